-- FLOP for a flight that is not there: create, ignore, deleted (D13, D18).
begin;
set local search_path = msgx, tap;
select plan(24);

select tap.start();
select is(tap.send(tap.flop('ESTT', tap.rec('N', '{"ESTT":"1"}'))) -> 'result',
          '{"records": 1, "written": 1, "created": 1, "events": 2}'::jsonb, 'CREATE: a new row');
select results_eq('select fday, state_version, last_message_id, high_message_id, created_at, updated_at from flight_schd where flid = $$N$$',
                  $$values (null::date, 1::bigint, 1::bigint, 1::bigint, tap.now_of(1), tap.now_of(1))$$,
                      'of no day, first version');
select is(tap.events(1), array['NOTICE N 1', 'STATE N 1'], 'told downstream');
select tap.given(tap.flop('ESTT', tap.rec('N', '{"ESTT":"2"}')));
select results_eq('select created_at, updated_at from flight_schd where flid = $$N$$',
          $$values (tap.now_of(1), tap.now_of(2))$$, 'created_at stays with the flight');

-- IGNORE.
select is((select array_agg(styp::text order by styp) from flop_kind where on_missing = 'IGNORE'),
          array['CNCL', 'FDEL'], 'CNCL and FDEL ignore a missing flight');
select is(tap.send(tap.flop('CNCL', tap.rec('M', '{"CNCL":"Y"}'))),
          '{"message_id": 3, "status": "SUCCEEDED", "result": {"records": 1, "written": 0, "not_applied": [{"flid": "M", "reason": "missing"}], "events": 0}}'::jsonb,
          'CNCL succeeds without effect and says so');
select is(tap.flids(), array['N'], 'no row');
select is(tap.events(3), '{}'::text[], 'no event');
select is((select backfill_status::text from proc_state where message_id = 3), 'PENDING', 'the mailbox is marked');
select is(tap.send(tap.flop('CNCL', tap.rec('M', '{"CNCL":"Y"}'), tap.rec('N', '{"CNCL":"Y"}'),
          tap.rec('K', '{"CNCL":"Y"}'))) -> 'result',
          '{"records": 3, "written": 1, "not_applied": [{"flid": "M", "reason": "missing"}, {"flid": "K", "reason": "missing"}], "events": 2}'::jsonb,
              'flights that are there are written');
select is(tap.flight('N') ->> 'CNCL', 'Y', 'N is cancelled');
update flop_kind set on_missing = 'IGNORE' where styp = 'ESTT';
select is(tap.send(tap.flop('ESTT', tap.rec('M', '{"ESTT":"1"}'))) -> 'result' -> 'not_applied',
          '[{"flid": "M", "reason": "missing"}]'::jsonb, 'the column decides');
update flop_kind set on_missing = 'CREATE' where styp in ('ESTT', 'CNCL');
select is(tap.send(tap.flop('CNCL', tap.rec('M', '{"CNCL":"Y"}'))) -> 'result' ->> 'created', '1',
          'in both directions');

-- A deleted flight.
select tap.given(tap.fdel('N'));
select is(tap.send(tap.flop('ESTT', tap.rec('N', '{"ESTT":"9"}'))) -> 'result',
          '{"records": 1, "written": 0, "not_applied": [{"flid": "N", "reason": "deleted"}], "events": 0}'::jsonb,
          'FLOP never brings a deleted flight back');
select is(tap.flids(), array['M'], 'no ghost');
select is(tap.send(tap.fdel('N', 'X')) -> 'result',
          '{"records": 2, "deleted": 0, "not_applied": [{"flid": "N", "reason": "deleted"}, {"flid": "X", "reason": "missing"}], "events": 0}'::jsonb,
          'deleting it again is fine');
select is((select state_version from flight_tombstone where flid = 'N'), 4::bigint,
          'the tombstone has the next version');
select is(tap.send(tap.adft(tap.rec('N', '{"ESTT":"9"}'))) -> 'result' ->> 'created', '1', 'ADFT brings it back');
select is(tap.version('N'), 5::bigint, 'its version goes on after the tombstone');
select is(tap.flight('N') - 'UPDATED_AT', format('{"FLID":"N","STATE_VERSION":5,"LAST_MESSAGE_ID":%s,"ESTT":"9"}',
          tap.last_id())::jsonb, 'nothing of its old state comes back');
select is(tap.send(tap.flop('ESTT', tap.rec('N', '{"ESTT":"10"}'))) -> 'result' ->> 'written', '1',
          'now a FLOP finds it');
select tap.given(tap.fdel('N'), tap.plan_of('09SEP26', 'N'));
select is(tap.version('N'), 8::bigint, 'a plan brings it back too, version and tombstone in one sequence');
select tap.given(tap.fdel('N'));
select results_eq('select flid::text, state_version, message_id, deleted_at from flight_tombstone where flid = $$N$$',
          $$select 'N', 9::bigint, tap.last_id(), tap.now_of(tap.last_id())$$, 'one tombstone per flight: the latest');
select is((select array_agg(e.kind || ' ' || e.state_version order by e.event_id) from msg_event e
          where e.flid = 'N' and e.target = 'KAFKA:schd'),
          array['STATE 1', 'STATE 2', 'STATE 3', 'TOMBSTONE 4', 'STATE 5', 'STATE 6', 'TOMBSTONE 7', 'STATE 8',
              'TOMBSTONE 9'], 'state, deletion and rebirth are ordered by version alone');

select * from finish();
rollback;
