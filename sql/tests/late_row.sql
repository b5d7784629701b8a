-- A late message that meets what a later one has written ends DEAD, or is processed (D29).
begin;
set local search_path = msgx, tap;
select plan(13);

create function pg_temp.given(p_id bigint, p_late boolean) returns void language sql as $$
    select enqueue_messages('box', array[p_id], array[('m' || p_id)::bytea], array['text'], null, null);
    update proc_state set late = p_late where message_id = p_id$$;
create function pg_temp.tried(p_id bigint, p_command jsonb) returns text language sql as $$
    select concat_ws(' ', o ->> 'status', o ->> 'error_class', o ->> 'reason')
      from tap.attempt(p_id, tap.with_meta(p_command, jsonb_build_object('SEQN', p_id::text))) o$$;

select tap.start();
select pg_temp.given(10, false);
select is(pg_temp.tried(10, tap.flop('ESTT', tap.rec('A', '{"ESTT":"1"}'))), 'SUCCEEDED', 'message 10 writes flight A');
select pg_temp.given(5, false);
select is(pg_temp.tried(5, tap.flop('ESTT', tap.rec('A', '{"ESTT":"2"}'))), 'SUCCEEDED', 'a lower id that is not late is as good as any');
select pg_temp.given(6, true);
select is(pg_temp.tried(6, tap.flop('ESTT', tap.rec('A', '{"ESTT":"3"}'))),
          'DEAD INFRA late-overtaken: message 6 came late, flight A was written by message 10 already (inbox.late_row = guard)',
          'a late one ends');
select is((select estt::text from flight_schd where flid = 'A'), '2', 'and writes nothing');
select pg_temp.given(7, true);
select is(pg_temp.tried(7, tap.flop('ESTT', tap.rec('B', '{"ESTT":"1"}'))), 'SUCCEEDED', 'one that meets nobody is processed');
select pg_temp.given(20, false);
select is(pg_temp.tried(20, tap.fdel('B')), 'SUCCEEDED', 'message 20 deletes flight B');
select pg_temp.given(11, true);
select alike(pg_temp.tried(11, tap.adft(tap.rec('B', '{"FLNO":"ZZ1"}'))), 'DEAD INFRA late-overtaken: message 11 came late, deleted flight B was written by message 20%',
          'what was deleted later stays deleted');
select pg_temp.given(12, true);
select is(pg_temp.tried(12, tap.fdel('A')), 'SUCCEEDED', 'a late deletion of what only earlier ones wrote');
select pg_temp.given(30, false);
select is(pg_temp.tried(30, tap.plan_of('2026-09-09', 'C')), 'SUCCEEDED', 'message 30 brings the plan of a day');
select pg_temp.given(25, true);
select alike(pg_temp.tried(25, tap.plan_of('2026-09-09', 'D')), 'DEAD INFRA late-overtaken: message 25 came late, flight C was written by message 30%',
          'a late plan would delete what the later one brought');
select pg_temp.given(26, true);
select alike(pg_temp.tried(26, tap.plan_of('2026-09-09', 'C')), 'DEAD INFRA late-overtaken:%', 'or write it over');
select set_setting('snapshot.absent_flight', 'keep', null);
select pg_temp.given(27, true);
select alike(pg_temp.tried(27, tap.plan_of('2026-09-09', 'E')), 'DEAD INFRA late-overtaken: message 27 came late, plan of 2026-09-09 was written by message 30%',
          'and its day has a later plan, whatever its flights');
select set_setting('inbox.late_row', 'process', null);
select pg_temp.given(28, true);
select is(pg_temp.tried(28, tap.flop('ESTT', tap.rec('C', '{"ESTT":"9"}'))), 'SUCCEEDED', 'process: it is taken as it comes');

select * from finish();
rollback;
