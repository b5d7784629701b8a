-- Deleting a flight: tombstone, details, events, other fields (D18, D23, D37, D41).
begin;
set local search_path = msgx, tap;
select plan(16);

select tap.start();
select tap.given(tap.dnld('09SEP26', tap.rec('A', '{"ESTT":"1"}', '{"GTDT":[{"GATE":"1"}],"ROUT":[{"APCD":"X"}]}'),
          tap.rec('B'), tap.rec('C'), tap.rec('D')));
select is(tap.send(tap.fdel('A')),
          '{"message_id": 2, "status": "SUCCEEDED", "result": {"records": 1, "deleted": 1, "events": 2}}'::jsonb,
          'one flight is deleted');
select is(tap.flids(), array['B', 'C', 'D'], 'its row is gone');
select is((select count(*) from flight_gate) + (select count(*) from flight_route_point), 0::bigint,
          'its details are gone');
select results_eq('select flid::text, state_version, deleted_at, message_id from flight_tombstone',
          $$values ('A', 2::bigint, tap.now_of(2), 2::bigint)$$, 'a tombstone with the next version is kept');
select results_eq('select target::text, kind::text, flid::text, state_version, payload from msg_event where message_id = 2 order by event_id',
                  $$values ('KAFKA:msg', 'NOTICE', 'A', 2::bigint,
                      '{"FLID":"A","MESSAGE_ID":2,"SNDR":"AODB","TYPE":"FLOP","STYP":"FDEL","SEQN":"2","DTTM":"20260909080000","CHANGED":["FDEL"]}'::jsonb),
                           ('KAFKA:schd', 'TOMBSTONE', 'A', 2, null)$$, 'a notice and a tombstone, of one version');
select is(tap.members('2026-09-09'), array['A', 'B', 'C', 'D'], 'the list of the day stays');
select is((select version from schd_gen), 1::bigint, 'so does the ledger');

select is(tap.send(tap.fdel('D', 'X', 'B', 'D')) -> 'result',
          '{"records": 4, "deleted": 2, "not_applied": [{"flid": "X", "reason": "missing"}], "events": 4}'::jsonb,
          'several, one missing, one twice');
select is(tap.events(3), array['NOTICE D 2', 'TOMBSTONE D 2', 'NOTICE B 2', 'TOMBSTONE B 2'],
          'in package order, each once');
select is(tap.send(tap.with_meta(tap.fdel('C'), '{"TYPE":"FDEL","STYP":"FDEL"}')) -> 'result' ->> 'deleted', '1',
          'TYPE FDEL does the same');
select is((select payload ->> 'TYPE' from msg_event where message_id = 4 and kind = 'NOTICE'), 'FDEL',
          'the notice says how it came');
select is(tap.flids(), '{}'::text[], 'all gone');

-- Other fields only show.
select tap.given(tap.adft(tap.rec('E', '{"ESTT":"1"}')));
select is(tap.send(tap.flop('FDEL', tap.rec('E', '{"ESTT":"2","REMC":"r"}', '{"GTDT":[{"GATE":"1"}]}'))) -> 'result',
          '{"records": 1, "deleted": 1, "other_fields": ["ESTT", "GTDT", "REMC"], "events": 2}'::jsonb,
          'known fields have no effect and are named');
select is((select payload -> 'CHANGED' from msg_event where message_id = tap.last_id() and kind = 'NOTICE'),
          '["FDEL"]'::jsonb, 'CHANGED is FDEL');
select is(tap.outcome(tap.flop('FDEL', tap.rec('E', '{"XXXX":"2"}'))), 'DEAD/EXHAUSTED MX103',
          'unknown fields are refused as everywhere');
select is(tap.outcome(tap.flop('FDEL', '{"set":{}}')), 'DEAD/MALFORMED MX101', 'a record without FLID');

select * from finish();
rollback;
