-- What the relay would deliver now (FS-8, US-07/2, D6, D19).
begin;
set local search_path = msgx, tap;
select plan(19);

select tap.start();
create view pg_temp.seen as select e.event_id, e.target::text, e.kind::text, e.flid::text, e.state_version,
    e.message_id from preview_events() e;
select is((select count(*) from preview_events()), 0::bigint, 'nothing yet');
select tap.given(tap.dnld('09SEP26', tap.rec('B', '{"ESTT":"1"}'), tap.rec('A'), tap.rec('C')));
select results_eq('select * from pg_temp.seen',
          $$values (1::bigint, 'KAFKA:schd', 'STATE', 'B', 1::bigint, 1::bigint), (2, 'KAFKA:schd', 'STATE', 'A', 1, 1),
          (3, 'KAFKA:schd', 'STATE', 'C', 1, 1)$$, 'a state per flight, by event id');
select is((select value from preview_events() where flid = 'B'), tap.flight('B'), 'with the projection as value');
select is((select updated_at from preview_events() where flid = 'B'), '2026-09-09T00:01:00.000000Z', 'and its instant');
select is((select array_agg(distinct epoch) from preview_events()), array[1], 'and the epoch');

-- Several states of a flight are one; notices stay.
select tap.given(tap.flop('ESTT', tap.rec('B', '{"ESTT":"2"}')), tap.flop('ESTT', tap.rec('B', '{"ESTT":"3"}')));
select results_eq('select * from pg_temp.seen',
          $$values (4::bigint, 'KAFKA:msg', 'NOTICE', 'B', 2::bigint, 2::bigint), (6, 'KAFKA:msg', 'NOTICE', 'B', 3, 3),
                  (2, 'KAFKA:schd', 'STATE', 'A', 1, 1), (3, 'KAFKA:schd', 'STATE', 'C', 1, 1),
                      (7, 'KAFKA:schd', 'STATE', 'B', 3,
                      3)$$, 'notices by event id, then one current state per flight');
select is((select value ->> 'ESTT' from preview_events() where flid = 'B' and kind = 'STATE'), '3', 'the latest state');
select is((select value from preview_events() where event_id = 4), (select payload from msg_event where event_id = 4),
          'a notice is its payload');
select is((select updated_at from preview_events() where event_id = 4), '2026-09-09T00:02:00.000000Z',
          'its instant is that of the event');

-- Deletion.
select tap.given(tap.fdel('B'));
select results_eq($$select * from pg_temp.seen where target = 'KAFKA:schd'$$,
          $$values (2::bigint, 'KAFKA:schd', 'STATE', 'A', 1::bigint, 1::bigint), (3, 'KAFKA:schd', 'STATE', 'C', 1, 1),
          (9, 'KAFKA:schd', 'TOMBSTONE', 'B', 4, 4)$$, 'a tombstone absorbs earlier states');
select is((select value from preview_events() where kind = 'TOMBSTONE'), '{"DELETED":true,"FLID":"B"}'::jsonb,
          'its value is FLID and the mark');
select tap.set('kafka.tombstone', 'null');
select is((select value from preview_events() where kind = 'TOMBSTONE'), null, 'or null for compacted topics');
select is((select count(*) from preview_events() where kind = 'TOMBSTONE'), 1::bigint, 'it is delivered all the same');
select tap.set('kafka.tombstone', 'object');
select tap.given(tap.adft(tap.rec('B', '{"ESTT":"9"}')));
select results_eq($$select * from pg_temp.seen where flid = 'B' and target = 'KAFKA:schd'$$,
          $$values (11::bigint, 'KAFKA:schd', 'STATE', 'B', 5::bigint, 5::bigint)$$,
          'a flight that is back shows its state');

-- The projection is newer than the event.
update flight_schd set state_version = 8, last_message_id = 77,
    updated_at = timestamptz '2026-09-10 00:00:00+00' where flid = 'A';
select results_eq($$select event_id, state_version, message_id, updated_at,
          value ->> 'STATE_VERSION' from preview_events() where flid = 'A'$$, $$values (2::bigint, 8::bigint,
          77::bigint, '2026-09-10T00:00:00.000000Z', '8')$$, 'headers say what the value is');

-- What is not pending is not shown; an anomaly is not shown either.
update msg_event set status = 'SENT' where target = 'KAFKA:msg';
update msg_event set status = 'DEAD' where flid = 'A';
select is((select array_agg(flid order by event_id) from pg_temp.seen), array['C', 'B'], 'neither SENT nor DEAD');
delete from flight_schd where flid = 'C';
select is((select array_agg(flid order by event_id) from pg_temp.seen), array['B'],
          'a state without a flight is no delivery');
select is((select array_agg(subject) from consistency_check where anomaly = 'state-without-flight'), array['C'],
          'but an anomaly');
select is((select count(*) from msg_event where status = 'SENT' and target = 'KAFKA:schd'), 0::bigint,
          'looking marks nothing');

select * from finish();
rollback;
