-- Temporary tables, functions, types and settings of the caller have no effect on an entry point.
begin;
set local search_path = msgx, tap;
select plan(40);

select tap.start();
grant usage on schema tap to msgx_driver;
select tap.given(tap.plan_of('09SEP26', 'A'));
select tap.enqueue(2);

-- The driver shadows what the engine uses.
create function pg_temp.make(p_sql text) returns text language sql as $$ select tap.do_as('msgx_driver', p_sql) $$;
select is(pg_temp.make('create temp table ' || t), 'done', 'the caller makes a temporary ' || split_part(t, ' ', 1))
  from unnest(array['setting (name text, value text)', 'proc_state (message_id bigint, status text)',
      'pipeline_lock (name text)', 'flight_schd (flid text)', 'flight_gate (flid text)', 'msg_event (event_id bigint)',
      'flop_kind (styp text)',
                    'ignore_rule (type text, styp text)', 'flight_field (tag text)',
                        'message_identity (identity_key text)', 'schd_gen (fday date)', 'schd_gen_flid (fday date)',
                        'error_class (sqlstate_prefix text)']) t;
select is(pg_temp.make(format($f$create function pg_temp.%s returns %s language plpgsql as $$ begin raise exception 'shadowed'; end $$ $f$,
          split_part(f, ' > ', 1), split_part(f, ' > ', 2))), 'done', 'and a temporary ' || split_part(f, ' > ', 1))
  from unnest(array['_get_setting(text) > text', '_lock_writer() > void', '_raise(text, text, jsonb) > void',
      '_identity_of(jsonb) > text', '_write_flights(bigint, msgx.flight_change[], text, timestamptz) > void',
      'left(text, integer) > text',
                    'coalesce_(text) > text', 'jsonb_array_length(jsonb) > integer', 'clock_timestamp() > timestamptz',
                        'pg_backend_pid() > integer', 'upper(text) > text']) f;
select is(pg_temp.make('create type pg_temp.flight_change as (a integer)'), 'done', 'and a temporary type');
select is(pg_temp.make('insert into pg_temp.ignore_rule values ($$FLOP$$, $$ESTT$$)'), 'done',
          'an ignore rule of its own');

-- And calls with a search path of its own.
create function pg_temp.attack(p_sql text) returns text language plpgsql set search_path = pg_temp, public, msgx,
    pg_catalog as $$
begin
    return tap.as_role('msgx_driver', p_sql);
end;
$$;

-- The engine does not see them.
select is(pg_temp.attack(format('select msgx.process_message(2, %L, null) ->> $$status$$',
          tap.with_meta(tap.flop('ESTT', tap.rec('A', '{"ESTT":"7"}')), '{"SEQN":"2"}'))), 'SUCCEEDED',
          'a message is processed');
select is((select estt::text from msgx.flight_schd), '7', 'in the real tables');
select is((select count(*) from msgx.msg_event where message_id = 2), 2::bigint, 'with real events');
select is(pg_temp.attack('select count(*) from msgx.flight_projection(null)'), '1',
          'the projection reads the real tables');
select is(pg_temp.attack('select count(*) from msgx.preview_events()'), '2', 'so does the preview');
select is(pg_temp.attack('select msgx.set_setting($$kafka.tombstone$$, $$null$$, null)'), '', 'a setting is set');
select is((select value::text from msgx.setting where name = 'kafka.tombstone'), 'null', 'in the real table');
select is(pg_temp.attack('select msgx.enqueue_messages($$m$$, array[3], array[$$x$$::bytea], array[$$text$$], null, null) ->> $$new$$'),
          '1', 'a message is enqueued');
select is(pg_temp.attack('select message_id from msgx.next_message(null)'), '3', 'the head is found');
select is(pg_temp.attack('select msgx.record_failure(3, null, null, null, $$MALFORMED$$, $$x$$, null) ->> $$status$$'),
          'DEAD', 'a failure is booked');
select is(pg_temp.attack('select count(*) from msgx.consistency_check'), '0', 'views read the real tables');
select is(pg_temp.attack('select msgx.release_writer(null)'), 'true', 'the right is released');
select is(pg_temp.attack('select msgx.acquire_writer(null) ->> $$epoch$$'), '1', 'and taken');
select is((select count(*) from pg_temp.flight_schd) + (select count(*) from pg_temp.msg_event) + (select count(*)
          from pg_temp.proc_state) + (select count(*) from pg_temp.setting), 0::bigint,
          'nothing went into the shadows');

select * from finish();
rollback;
