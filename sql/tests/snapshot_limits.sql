-- Plans that delete too much, are too large or are older than the state (D32, D33, FS-4.2-8).
begin;
set local search_path = msgx, tap;
select plan(23);

select tap.start();
create function pg_temp.plan(p_from integer, p_to integer) returns jsonb
language sql immutable
as $$ select tap.plan_of('09SEP26', variadic (select coalesce(array_agg('F' || lpad(g::text, 3, '0') order by g), '{}')
    from generate_series(p_from, p_to) g)) $$;
create temp table before (c jsonb);

-- D32: off is the norm.
select tap.given(pg_temp.plan(1, 40));
select is(tap.send(pg_temp.plan(1, 1)) -> 'result' ->> 'deleted', '39', 'off: a plan may delete everything');

-- 25 of 50 would go.
select tap.given(pg_temp.plan(1, 50));
select tap.set('snapshot.max_delete_ratio', '0.49');
insert into before select tap.content();
select is(tap.outcome(pg_temp.plan(1, 25)), 'DEAD/UNSUPPORTED MX104', 'more than the ratio: DEAD at once, UNSUPPORTED');
select is(tap.reason(),
          format('message %s: the plan of 2026-09-09 would delete 25 of 50 flights (snapshot.max_delete_ratio = 0.49); check it, raise the ratio and have the plan sent again',
          tap.last_id()), 'the reason counts');
select is((select attempts from proc_state where message_id = tap.last_id()), 1, 'one attempt');
select is(tap.changed((select c from before)), array['message_identity', 'message_raw', 'proc_state'],
          'nothing of the state is changed');
select tap.set('snapshot.max_delete_ratio', '0.5');
select is(tap.send(pg_temp.plan(1, 25)) -> 'result' ->> 'deleted', '25', 'exactly the ratio passes');
select tap.set('snapshot.max_delete_ratio', '0');
select is(tap.send(pg_temp.plan(20, 25)) -> 'result' ->> 'deleted', '19', '19 pass with any ratio');
select tap.given(pg_temp.plan(1, 21));
select is(tap.outcome(pg_temp.plan(21, 21)), 'DEAD/UNSUPPORTED MX104', '20 do not');
select tap.set('snapshot.max_delete_ratio', '1');
select is(tap.outcome(pg_temp.plan(1, 0)), 'SUCCEEDED', 'ratio 1 never trips');
select tap.set('snapshot.max_delete_ratio', '0');
select tap.given(pg_temp.plan(1, 30));
update flight_schd set fday = '2026-09-10' where flid > 'F010';
select is(tap.send(pg_temp.plan(1, 1)) -> 'result' ->> 'deleted', '9', 'only what would really go counts');
select tap.set('snapshot.max_delete_ratio', 'off');

-- Too many records.
select tap.set('snapshot.max_flights', '5');
select is(tap.outcome(pg_temp.plan(1, 5)), 'SUCCEEDED', 'the limit itself passes');
select is(tap.outcome(pg_temp.plan(1, 6)), 'DEAD/MALFORMED MX102', 'one more is refused as capacity');
select is(tap.reason(), format('message %s: capacity: 6 records, more than snapshot.max_flights', tap.last_id()),
          'the reason names the limit');
select is(tap.members('2026-09-09'), array['F001', 'F002', 'F003', 'F004', 'F005'], 'the plan before stays');
select is(tap.outcome(tap.adft(tap.rec('1'), tap.rec('2'), tap.rec('3'), tap.rec('4'), tap.rec('5'), tap.rec('6'))),
          'DEAD/MALFORMED MX102', 'ADFT too');
select is(tap.outcome(tap.flop('ESTT', tap.rec('1', '{"ESTT":"1"}'), tap.rec('2', '{"ESTT":"1"}'),
          tap.rec('3', '{"ESTT":"1"}'), tap.rec('4', '{"ESTT":"1"}'), tap.rec('5', '{"ESTT":"1"}'),
          tap.rec('6', '{"ESTT":"1"}'))),
          'DEAD/MALFORMED MX102', 'FLOP too');
select tap.set('snapshot.max_flights', '10000');

-- D33: older than the state.
select tap.given(tap.plan_of('20SEP26', 'P', 'Q', 'R'));
select tap.given(tap.with_meta(tap.flop('ESTT', tap.rec('P', '{"ESTT":"1"}'), tap.rec('X', '{"ESTT":"1"}')),
          '{"DTTM":"20260909080001"}'));
select tap.given(tap.with_meta(tap.flop('ESTT', tap.rec('Q', '{"ESTT":"1"}')), '{"DTTM":"20260909080000"}'));
select is((select array_agg(last_dttm::text order by flid) from flight_schd where flid in ('P', 'Q', 'R')),
          array['20260909080001', '20260909080000', '20260909080000'], 'the flight keeps the DTTM of its last message');
select is(tap.send(tap.plan_of('20SEP26', 'P', 'Q', 'R')) -> 'result' ->> 'older_than_state', '1',
          'a plan older than what it overwrites is counted');
select is(tap.flight('P') ->> 'MVIN', 'D', 'it is applied all the same');
select is((select last_dttm::text from flight_schd where flid = 'P'), '20260909080000', 'and leaves its own DTTM');
select is(tap.send(tap.plan_of('20SEP26', 'P', 'Q', 'R')) -> 'result' ? 'older_than_state', false,
          'now nothing is older');
select tap.given(tap.with_meta(tap.flop('ESTT', tap.rec('P', '{"ESTT":"1"}')), '{"DTTM":"20260909080001"}'));
select is(tap.send(tap.with_meta(tap.plan_of('20SEP26', 'P'), '{"DTTM":""}')) -> 'result' ? 'older_than_state', false,
          'a plan without DTTM cannot be compared');
select is((select last_dttm from flight_schd where flid = 'P'), null, 'and leaves none');

select * from finish();
rollback;
