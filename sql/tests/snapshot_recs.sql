-- RECS against the records, and no flight twice in a package (D7, D8).
begin;
set local search_path = msgx, tap;
select plan(37);

select tap.start();
create function pg_temp.recs(p_recs text, p_count integer) returns jsonb
language sql immutable
as $$ select jsonb_set(tap.plan_of('09SEP26', variadic (select coalesce(array_agg('F' || g), '{}')
    from generate_series(1, p_count) g)), '{schedule,RECS}', to_jsonb(p_recs)) $$;

select is(tap.outcome(pg_temp.recs('2', 2)), 'SUCCEEDED', 'RECS equals the records');
select is(tap.outcome(pg_temp.recs('0002', 2)), 'SUCCEEDED', 'with leading zeros');
select is(tap.outcome(pg_temp.recs('3', 2)), 'DEAD/MALFORMED MX101', 'more announced than received');
select is(tap.reason(),
          'message 3, tag RECS: RECS differs from the 2 records received (snapshot.recs_mismatch = reject)',
          'the reason names the rule');
select is(tap.outcome(pg_temp.recs('1', 2)), 'DEAD/MALFORMED MX101', 'more received than announced');
select is(tap.outcome(pg_temp.recs('0', 2)), 'DEAD/MALFORMED MX101', 'none announced');
select is(tap.outcome(pg_temp.recs('2', 0)), 'DEAD/MALFORMED MX101', 'none received');
select is(tap.outcome(pg_temp.recs(r, 2)), 'DEAD/MALFORMED MX101', format('RECS %s', to_json(r)))
          from unnest(array['', ' 2', 'two', '-2', '2.0', '1234567', '２', e'2\n']) r;
select is(tap.outcome(pg_temp.recs('2', 2) #- '{schedule,RECS}'), 'DEAD/MALFORMED MX101', 'no RECS');
select is(tap.outcome(pg_temp.recs('2', 2) - 'schedule'), 'DEAD/MALFORMED MX101', 'no schedule at all');
select is(tap.outcome(pg_temp.recs('2', 2) - 'flights'), 'DEAD/MALFORMED MX101', 'no flights at all');
select is(tap.members('2026-09-09'), array['F1', 'F2'], 'the plan before stays');
select is((select version from schd_gen), 2::bigint, 'only the accepted ones count');

select tap.set('snapshot.recs_mismatch', 'warn');
select is(tap.send(pg_temp.recs('9', 3)) -> 'result' -> 'recs_mismatch', 'true'::jsonb, 'warn: accepted and counted');
select is(tap.members('2026-09-09'), array['F1', 'F2', 'F3'], 'warn: the records received are the list');
select is((select recs from schd_gen), 3, 'warn: the ledger keeps the number received');
select is(tap.send(pg_temp.recs('3', 3)) -> 'result' -> 'recs_mismatch', null, 'warn: an equal one is not counted');
select is(tap.outcome(pg_temp.recs('x', 3)), 'DEAD/MALFORMED MX101', 'warn: no number is malformed all the same');
select is(tap.outcome(pg_temp.recs('3', 3) #- '{schedule,RECS}'), 'DEAD/MALFORMED MX101', 'warn: no RECS too');
select is(tap.send(jsonb_set(tap.adft(tap.rec('X', '{"ESTT":"1"}')), '{schedule,RECS}',
          '"7"')) -> 'result' -> 'recs_mismatch', 'true'::jsonb, 'warn: ADFT counts too');
select tap.set('snapshot.recs_mismatch', 'reject');
select is(tap.outcome(jsonb_set(tap.adft(tap.rec('X', '{"ESTT":"2"}')), '{schedule,RECS}', '"7"')),
          'DEAD/MALFORMED MX101', 'reject: ADFT is refused too');

-- RECS = 0.
select is(tap.send(pg_temp.recs('0', 0)) -> 'result',
          '{"fday": "2026-09-09", "version": 5, "records": 0, "written": 0, "created": 0, "deleted": 3, "events": 3}'::jsonb,
          'an empty plan with a header day deletes the list');
select is(tap.flids(), array['X'], 'the flights of the list are gone');
select is((select recs from schd_gen), 0, 'the ledger says 0');
select is(tap.outcome(pg_temp.recs('0', 0) #- '{schedule,FDAY}'), 'DEAD/MALFORMED MX101',
          'an empty plan without a header day is refused');

-- Twice.
select is(tap.outcome(tap.plan_of('09SEP26', 'B', 'A', 'B', 'A')), 'DEAD/MALFORMED MX101',
          'a flight twice in a package');
select is(tap.reason(), format('message %s, flight A, tag FLID: the flight stands twice in one package', tap.last_id()),
          'the reason names it');
select is(tap.outcome(tap.adft(tap.rec('A', '{"ESTT":"1"}'), tap.rec('A', '{"ESTT":"1"}'))), 'DEAD/MALFORMED MX101',
          'in ADFT as well, even when equal');
select is(tap.outcome(tap.plan_of('09SEP26', 'a', 'A', 'A ')), 'SUCCEEDED', 'other letters are other flights');
select is(tap.members('2026-09-09'), array['A', 'A ', 'a'], 'all three are on the list');

select * from finish();
rollback;
