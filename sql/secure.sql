-- Last step of every installation: pins each routine to its own schema and sets the rights on tables. Variables: schema.
select set_config('msgx.schema', :'schema', false);

do $$
declare
    v_schema  text := current_setting('msgx.schema');
    v_routine regprocedure;
begin
    for v_routine in
        select p.oid::regprocedure from pg_catalog.pg_proc p
          join pg_catalog.pg_namespace n on n.oid = p.pronamespace
         where n.nspname = v_schema
    loop
        execute format('alter routine %s set search_path = pg_catalog, %I, pg_temp', v_routine, v_schema);
    end loop;
end;
$$;

-- Operators read everything; the driver reads views, catalogues and originals; reports read views.
revoke all on all tables in schema :"schema" from public, :"driver", :"operator", :"report";
grant select on all tables in schema :"schema" to :"operator";
grant select on
    flight_schd_display, queue_status, queue_head, dead_letter, backfill_todo, snapshot_ledger,
    ignored_count, duplicate_count, consistency_check, delivery_lag, health
to :"driver", :"report";
grant select on setting, setting_history, schema_history to :"driver", :"report";
grant select on inbox_cursor, inbox_gap, delivery_target, loop_status, proc_state, message_raw, msg_event to :"driver";
