-- A consumer starts anew from whole states (US-07/3, FS-8).
begin;
set local search_path = msgx, tap;
select plan(17);

select tap.start();
select tap.given(tap.dnld('09SEP26', tap.rec('B'), tap.rec('A'), tap.rec('X')), tap.dnld('10SEP26', tap.rec('C')), tap.fdel('X'));
update msg_event set status = 'SENT';
select throws_ok($$select republish_flights(null, null, '', 'why', null)$$, 'MX001', null, 'an operator is needed');
select throws_ok($$select republish_flights(null, null, 'who', ' ', null)$$, 'MX001', null, 'a reason is needed');
select throws_ok($$select republish_flights(array['A'], '2026-09-09', 'who', 'why', null)$$, 'MX001', null, 'flights or a day');
select throws_ok($$select republish_flights(array['A', 'NO'], null, 'who', 'why', null)$$, 'MX002', 'flight NO was never there', 'an unknown flight is named');
select is((select count(*) from msg_event where status = 'PENDING'), 0::bigint, 'and nothing was added');

select is(republish_flights(null, null, 'who', 'new consumer', '2026-09-09 12:00:00+00'), 3, 'all: each flight once');
select results_eq($$select kind::text, flid::text, state_version, message_id from msg_event where status = 'PENDING' order by event_id$$,
          $$values ('STATE', 'A', 1::bigint, 1::bigint), ('STATE', 'B', 1, 1), ('STATE', 'C', 1, 2)$$, 'with its version and its last message');
select is((select count(*) from claim_events('KAFKA:schd', md5('a')::uuid, 10, 60, null)), 3::bigint, 'the relay finds them');
select is((select max(event_id) from msg_event), (select count(*) from msg_event), 'ids stay without gaps');
update msg_event set status = 'SENT';
select is(republish_flights(null, '2026-09-10', 'who', 'why', null), 1, 'the flights of a day');
select is((select flid::text from msg_event where status = 'PENDING'), 'C', 'of that day only');
update msg_event set status = 'SENT';
select is(republish_flights(array['X', 'A'], null, 'who', 'why', null), 2, 'named flights');
select results_eq($$select kind::text, flid::text, state_version, message_id from msg_event where status = 'PENDING' order by event_id$$,
          $$values ('STATE', 'A', 1::bigint, 1::bigint), ('TOMBSTONE', 'X', 2, 3)$$, 'a deleted one gets its tombstone again');
select is(republish_flights(null, '2030-01-01', 'who', 'why', null), 0, 'none is none');
select is((select count(*) from operator_audit where action = 'republish_flights'), 4::bigint, 'each is audited');
select is((select detail from operator_audit where action = 'republish_flights' order by audit_id limit 1), '{"events": 3, "fday": null, "flights": null}'::jsonb, 'with its size');
select is((select state_version from flight_schd where flid = 'A'), 1::bigint, 'no flight changes');

select * from finish();
rollback;
