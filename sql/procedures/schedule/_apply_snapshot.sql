-- ================================================================================================
-- _apply_snapshot
-- Purpose   : The plan of a day replaces its list; its fields win over what came before (rule M).
-- Params    : p_message_id; p_command: SCHD DNLD (or RESP); p_dttm: full DTTM or null; p_now
-- Returns   : result: fday, version, records, written, created, deleted, events and what was counted
-- Errors    : MX101, MX102, MX103 content; MX104 deletes too much; MX201 compare-and-swap
-- Locks     : none
-- Reads     : schd_gen, schd_gen_flid, flight_schd, setting
-- Writes    : flight_schd and details, flight_tombstone, schd_gen, schd_gen_flid, msg_event
-- Called by : process_message
-- Sources   : FS-3.3, FS-4.2, D1, D2, D3, D7-D9, D18, D23, D32, D33
-- Oracle    : msgx_schedule.apply_snapshot
-- ================================================================================================
create or replace function _apply_snapshot(p_message_id bigint, p_command jsonb, p_dttm text, p_now timestamptz) returns jsonb
language plpgsql volatile
-- Whole sets: plans are made for the size of this plan; undoes what process_message fixes for single flights.
set plan_cache_mode = force_custom_plan
set enable_seqscan = on
set enable_hashjoin = on
set enable_mergejoin = on
as $$
declare
    v_fday    date;
    v_gen     schd_gen%rowtype;
    v_warn    boolean;
    v_ignored jsonb;
    v_listed  text[];
    v_old     integer;
    v_goes    text[] := '{}'::text[];
    v_handed  flight_change[] := '{}'::flight_change[];
    v_protect boolean;
    v_kept    text[] := '{}'::text[];
    v_changes flight_change[];
    v_shared  text[] := '{}'::text[];
    v_older   integer;
    v_ratio   text;
    v_gone    outbox_entry[];
    v_version bigint;
    v_events  integer;
begin
    v_warn := _check_recs(p_message_id, p_command);
    v_fday := _snapshot_day(p_message_id, p_command);
    perform _check_twice(p_message_id, p_command);
    v_ignored := _check_flights(p_message_id, p_command, '{}');

    select g.* into v_gen from schd_gen g where g.fday = v_fday;
    if v_gen.last_message_id = p_message_id then
        return jsonb_build_object('fday', v_fday, 'version', v_gen.version, 'replayed', true);
    end if;

    select coalesce(array_agg(e.j ->> 'FLID' order by e.ord), '{}') into v_listed
      from jsonb_array_elements(p_command -> 'flights') with ordinality as e (j, ord);
    select count(*) into v_old from schd_gen_flid g where g.fday = v_fday;
    v_protect := _get_setting('snapshot.reclaim') = 'protect';

    -- Deletion set: (old list - new list), where the flight still belongs to this day (FS-3.3-19).
    if _get_setting('snapshot.absent_flight') = 'delete' then
        select coalesce(array_agg(f.flid::text order by f.flid collate "C"), '{}') into v_goes
          from schd_gen_flid g
          join flight_schd f on f.flid = g.flid
         where g.fday = v_fday and f.fday = v_fday
           and not exists (select 1 from unnest(v_listed) n (flid) where n.flid = g.flid);
        if v_protect then
            -- What another day's list holds is handed over to the latest such day instead (D3).
            select coalesce(array_agg(row(0, f.flid, false, f.state_version + 1, o.fday, '{}'::jsonb, '{}'::jsonb, null)::flight_change
                                      order by f.flid collate "C"), '{}')
              into v_handed
              from unnest(v_goes) as g (flid)
              join flight_schd f on f.flid = g.flid
              join lateral (select max(x.fday) as fday from schd_gen_flid x where x.flid = g.flid and x.fday <> v_fday) o on o.fday is not null;
            select coalesce(array_agg(g.flid order by g.flid collate "C"), '{}') into v_goes
              from unnest(v_goes) as g (flid)
             where not exists (select 1 from unnest(v_handed) h where h.flid = g.flid);
        end if;
        v_ratio := _get_setting('snapshot.max_delete_ratio');
        if v_ratio <> 'off' and cardinality(v_goes) >= 20 and cardinality(v_goes) > v_ratio::numeric * v_old then
            perform _refuse('MX104', p_message_id, null, null,
                format('the plan of %s would delete %s of %s flights (snapshot.max_delete_ratio = %s); check it, raise the ratio and have the plan sent again',
                       v_fday, cardinality(v_goes), v_old, v_ratio));
        end if;
        v_shared := _shared_of(v_goes, v_listed);
        -- A shared flight goes with its main; it is not handed over (D3).
        select coalesce(array_agg(h order by h.flid collate "C"), '{}') into v_handed
          from unnest(v_handed) h where h.flid <> all (v_shared);
    end if;
    if v_protect then
        select coalesce(array_agg(f.flid::text), '{}') into v_kept
          from flight_schd f where f.flid = any (v_listed) and f.fday > v_fday;
    end if;
    select count(*) into v_older from flight_schd f
     where f.flid = any (v_listed) and f.flid <> all (v_kept) and f.last_dttm > p_dttm;

    v_changes := _stage_changes(
        case when v_kept = '{}' then p_command -> 'flights'
             else (select coalesce(jsonb_agg(e.j order by e.ord), '[]')
                     from jsonb_array_elements(p_command -> 'flights') with ordinality as e (j, ord)
                    where e.j ->> 'FLID' <> all (v_kept)) end,
        v_fday, _get_setting('snapshot.absent_field') = 'clear', false);
    perform _write_flights(p_message_id, v_changes || v_handed, p_dttm, p_now);
    select coalesce(array_agg(row('KAFKA:schd', 'TOMBSTONE', f.flid, f.state_version + 1, null)::outbox_entry order by f.flid collate "C"), '{}')
      into v_gone from flight_schd f where f.flid = any (v_goes || v_shared);
    perform _delete_flights(v_goes || v_shared, p_message_id, p_now);

    delete from schd_gen_flid g
     where g.fday = v_fday and not exists (select 1 from unnest(v_listed) n (flid) where n.flid = g.flid);
    insert into schd_gen_flid (fday, flid)
    select v_fday, n.flid from unnest(v_listed) n (flid) on conflict do nothing;
    v_version := _advance_schd_gen(v_fday, v_gen.version, p_message_id, cardinality(v_listed), p_now);

    v_events := _add_events(p_message_id,
        (select coalesce(array_agg(row('KAFKA:schd', 'STATE', c.flid, c.state_version, null)::outbox_entry order by c.at), '{}')
           from unnest(v_changes || v_handed) with ordinality as c (ord, flid, is_new, state_version, fday, vals, sets, carried, at))
        || v_gone, p_now);
    return jsonb_strip_nulls(jsonb_build_object(
        'fday', v_fday, 'version', v_version, 'records', cardinality(v_listed), 'written', cardinality(v_changes),
        'created', (select count(*) from unnest(v_changes) c where c.is_new),
        'deleted', cardinality(v_goes) + cardinality(v_shared),
        'handed_over', nullif(cardinality(v_handed), 0), 'protected', nullif(cardinality(v_kept), 0),
        'older_than_state', nullif(v_older, 0), 'recs_mismatch', nullif(v_warn, false),
        'ignored_fields', v_ignored, 'events', v_events));
end;
$$;

comment on function _apply_snapshot(bigint, jsonb, text, timestamptz) is 'Applies a whole day plan: merge, diff-delete, list, compare-and-swap, events (FS-3.3, FS-4.2).';
revoke all on function _apply_snapshot(bigint, jsonb, text, timestamptz) from public;
