-- Marks of the mailbox: claim, confirm, fail, requeue, floor (US-09, D17, D38).
begin;
set local search_path = msgx, tap;
select plan(25);

select tap.start();
insert into inbox_cursor (source, watermark, id_offset) values ('box', 20, 10);
create function pg_temp.t(p integer) returns timestamptz language sql immutable as $$select timestamptz '2026-09-09 16:00:00+00' + make_interval(secs => p)$$;
create function pg_temp.r(p text) returns uuid language sql immutable as $$select md5(p)::uuid$$;
create function pg_temp.due(p_token text, p_at integer) returns table (message_id bigint, mailbox_id bigint, seq integer, status text, completed_at timestamp, gone boolean)
    language sql as $$select c.message_id, c.mailbox_id, c.backfill_seq, c.status::text, c.completed_at, c.gone from claim_backfill('box', pg_temp.r(p_token), 100, 60, pg_temp.t(p_at)) c$$;
select enqueue_messages('box', array[11, 12, 13, 14], array['a', 'b', 'c', 'd']::bytea[], array_fill('text'::text, array[4]), null, pg_temp.t(0));
update proc_state set mailbox_id = message_id - 10;
select is_empty($$select * from pg_temp.due('a', 0)$$, 'an unfinished message is not marked');
select process_message(11, tap.flop('ESTT', tap.rec('A', '{"ESTT":"1"}')) || jsonb_build_object('meta', tap.meta('FLOP', 'ESTT') || '{"SEQN":"1"}'), pg_temp.t(1));
select process_message(12, tap.flop('ESTT', tap.rec('A', '{"ESTT":"1"}')) || jsonb_build_object('meta', tap.meta('FLOP', 'ESTT') || '{"SEQN":"1"}'), pg_temp.t(2));
select process_message(13, jsonb_build_object('meta', tap.meta('LDM', 'X')), pg_temp.t(3));
select record_failure(14, null, null, null, 'MALFORMED', 'message 14: bad', pg_temp.t(4));
select results_eq($$select * from pg_temp.due('a', 5)$$,
          $$values (11::bigint, 1::bigint, 1, 'SUCCEEDED', timestamp '2026-09-10 00:00:01', false), (12, 2, 1, 'SKIPPED', '2026-09-10 00:00:02', false),
              (13, 3, 1, 'SKIPPED', '2026-09-10 00:00:03', false), (14, 4, 1, 'DEAD', '2026-09-10 00:00:04', false)$$,
          'all four ends are marked, with the completion time of the airport');
select throws_ok($$select * from pg_temp.due('b', 6)$$, 'MX503', null, 'one worker at a time');
select throws_ok($$select confirm_backfill(pg_temp.r('b'), array[11]::bigint[], array[1], null)$$, 'MX503', null, 'another confirms nothing');
select throws_ok($$select confirm_backfill(pg_temp.r('a'), array[11]::bigint[], '{}', null)$$, 'MX001', null, 'pairs only');
select throws_ok($$select * from claim_backfill(null, pg_temp.r('a'), 10, 60, null)$$, 'MX001', null, 'a source is needed');
select is(confirm_backfill(pg_temp.r('a'), array[11, 12]::bigint[], array[1, 1], pg_temp.t(7)), 2, 'two are done');
select results_eq($$select message_id, backfill_status::text, backfilled_at from proc_state order by 1 limit 3$$,
          $$values (11::bigint, 'DONE', pg_temp.t(7)), (12, 'DONE', pg_temp.t(7)), (13, 'PENDING', null)$$, 'and only these');
select is((select floor_id from delivery_target where target = 'MAILBOX'), 13::bigint, 'the floor follows');
select is(confirm_backfill(pg_temp.r('a'), array[11]::bigint[], array[1], pg_temp.t(8)), 0, 'again changes nothing');

select confirm_backfill(pg_temp.r('a'), array[999999999]::bigint[], array[1], null);
select is((select floor_id from delivery_target where target = 'MAILBOX'), 13::bigint, 'an id that is none moves no floor');

-- Requeued since the claim: the old mark is void.
update proc_state set backfill_seq = 2 where message_id = 13;
select is(confirm_backfill(pg_temp.r('a'), array[13]::bigint[], array[1], pg_temp.t(9)), 0, 'a mark of before the requeue confirms nothing');
select is(fail_backfill(pg_temp.r('a'), array[13]::bigint[], array[1], 'x', pg_temp.t(9)), 0, 'and fails nothing');
select is(fail_backfill(pg_temp.r('a'), array[13]::bigint[], array[2], 'x', pg_temp.t(9)), 1, 'a failed mark');
select is((select array_agg(message_id) from pg_temp.due('a', 9)), array[14]::bigint[], 'waits, and holds back nobody');
select is((select array_agg(message_id) from pg_temp.due('a', 10)), array[13, 14]::bigint[], 'and is due after its backoff');
select count(fail_backfill(pg_temp.r('a'), array[13]::bigint[], array[2], 'x', pg_temp.t(10))) from generate_series(1, 12) \gset
select is((select backfill_next_at from proc_state where message_id = 13), pg_temp.t(310), 'the backoff has a cap, and never gives up');
select set_setting('backfill.overdue_after', '60', null);
select is((select array_agg(message_id) from pg_temp.due('a', 61)), array[13, 14]::bigint[], 'an overdue one no longer waits');

select results_eq($$select message_id from claim_backfill('box', pg_temp.r('a'), 1, 60, pg_temp.t(61))$$, $$values (14::bigint)$$,
          'but takes no place of one that is due');

-- A mailbox that was numbered anew has no row for an older message.
update inbox_cursor set id_offset = 100;
select is((select array_agg(gone) from pg_temp.due('a', 400)), array[true, true], 'gone');
update inbox_cursor set id_offset = 10;

-- The floor never passes the head.
select enqueue_messages('box', array[15, 16], array['a', 'b']::bytea[], array_fill('text'::text, array[2]), null, pg_temp.t(0));
update proc_state set mailbox_id = message_id - 10;
select is(confirm_backfill(pg_temp.r('a'), array[13, 14]::bigint[], array[2, 1], pg_temp.t(11)), 2, 'all are done');
select is((select floor_id from delivery_target where target = 'MAILBOX'), 15::bigint, 'the floor stops at the head');
select record_failure(15, null, null, null, 'MALFORMED', 'message 15: bad', pg_temp.t(12));
select is((select array_agg(message_id) from pg_temp.due('a', 500)), array[15]::bigint[], 'whose mark is found when it ends');
select results_eq($$select message_id, mailbox_id from backfill_todo$$, $$values (15::bigint, 5::bigint)$$, 'the view lists it');
select is((select pending from delivery_lag where target = 'MAILBOX'), 1::bigint, 'and delivery_lag counts it');

select * from finish();
rollback;
