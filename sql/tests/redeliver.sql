-- Notices that were given up are sent again, by an operator only (D39).
begin;
set local search_path = msgx, tap;
select plan(16);

select tap.start();
select tap.given(tap.flop('ESTT', tap.rec('A', '{"ESTT":"1"}')), tap.flop('ESTT', tap.rec('B', '{"ESTT":"1"}')), tap.flop('ESTT', tap.rec('C', '{"ESTT":"1"}')));
create function pg_temp.notices() returns table (event_id bigint, flid text, again boolean) language sql
    as $$select c.event_id, c.flid::text, is_redelivered(c.event_id) from claim_events('KAFKA:msg', md5('a')::uuid, 100, 60, '2026-09-09 10:00:00+00') c$$;
select count(*) from pg_temp.notices() \gset
select set_setting('delivery.max_attempts', '1', null);
select fail_events('KAFKA:msg', md5('a')::uuid, array_agg(e.event_id), array_agg('too large'::text), null) from msg_event e where e.kind = 'NOTICE' and e.flid in ('A', 'B');
select confirm_events('KAFKA:msg', md5('a')::uuid, array_agg(e.flid::text), array_agg(e.event_id), null) from msg_event e where e.kind = 'NOTICE' and e.flid = 'C';
select is((select floor_id from delivery_target where target = 'KAFKA:msg'), (select max(event_id) + 1 from msg_event where kind = 'NOTICE'), 'the floor has passed them');
select is_empty('select * from pg_temp.notices()', 'nothing is due');

select throws_ok($$select redeliver_events(null, ' ', 'why', null)$$, 'MX001', null, 'an operator is needed');
select throws_ok($$select redeliver_events(null, 'who', '', null)$$, 'MX001', null, 'a reason is needed');
select throws_ok($$select redeliver_events(array[1, 99]::bigint[], 'who', 'why', null)$$, 'MX002', 'event 99 is no DEAD notice', 'an unknown event is named');
select throws_ok($$select redeliver_events((select array_agg(event_id) from msg_event where flid = 'C' and kind = 'NOTICE'), 'who', 'why', null)$$, 'MX002', null,
          'what was sent is not sent again');
select is((select count(*) from msg_event where status = 'DEAD'), 2::bigint, 'and nothing was opened');
select is(redeliver_events((select array_agg(event_id) from msg_event where flid = 'B' and kind = 'NOTICE'), 'who', 'the limit was raised', '2026-09-09 12:00:00+00'), 1, 'one of them');
select results_eq('select flid, again from pg_temp.notices()', $$values ('B', true)$$, 'is due again, and says so');
select results_eq($$select attempts, next_attempt_at, last_error::text from msg_event where flid = 'B' and kind = 'NOTICE'$$, $$values (0, null::timestamptz, null::text)$$, 'as at first');
select is(redeliver_events(null, 'who', 'all', null), 1, 'all that are left');
select results_eq('select flid, again from pg_temp.notices()', $$values ('A', true), ('B', true)$$, 'in the order of their ids');
select tap.given(tap.flop('ESTT', tap.rec('D', '{"ESTT":"1"}')));
select is((select again from pg_temp.notices() where flid = 'D'), false, 'a new one says nothing');
select is(redeliver_events(null, 'who', 'none left', null), 0, 'none is none');
select is((select count(*) from operator_audit where action = 'redeliver_events'), 3::bigint, 'each is audited');
select is((select detail - 'first' from operator_audit where done_at = '2026-09-09 12:00:00+00'), '{"events": 1}'::jsonb, 'with its size');

select * from finish();
rollback;
