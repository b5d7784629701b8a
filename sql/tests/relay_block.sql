-- A target that refuses exhausts nothing; a claim flushes; the view tells (D39, contract 4).
begin;
set local search_path = msgx, tap;
select plan(14);

select tap.start();
select tap.given(tap.flop('ESTT', tap.rec('A', '{"ESTT":"1"}')));
select set_config('synchronous_commit', 'off', true);
select is((select count(*) from claim_events('KAFKA:msg', md5('a')::uuid, 10, 60, '2026-09-09 10:00:00+00')), 1::bigint, 'claimed');
select is(current_setting('synchronous_commit'), 'on', 'the commit of a claim flushes, whatever the session said');
select set_config('synchronous_commit', 'remote_apply', true);
select count(*) from claim_events('KAFKA:msg', md5('a')::uuid, 10, 60, '2026-09-09 10:00:00+00') \gset
select is(current_setting('synchronous_commit'), 'remote_apply', 'a stronger one stays');
select is(block_target('KAFKA:msg', md5('a')::uuid, e'all brokers\nare down', '2026-09-09 10:00:01+00'), 1, 'the target refuses');
select is(block_target('KAFKA:msg', md5('a')::uuid, 'still', '2026-09-09 10:00:05+00'), 2, 'again');
select results_eq($$select failures, blocked_since, last_error::text from delivery_target where target = 'KAFKA:msg'$$,
          $$values (2, timestamptz '2026-09-09 10:00:01+00', 'still')$$, 'since when, and the last error');
select is((select sum(attempts) from msg_event), 0::bigint, 'no event counts an attempt');
select is((select status from health where "check" = 'target KAFKA:msg'), 'fail', 'health says so');
select is(confirm_events('KAFKA:msg', md5('a')::uuid, array['A'], array[1]::bigint[], '2026-09-09 10:00:09+00'), 1, 'it works again');
select results_eq($$select failures, blocked_since, last_error::text, confirmed_at from delivery_target where target = 'KAFKA:msg'$$,
          $$values (0, null::timestamptz, null::text, timestamptz '2026-09-09 10:00:09+00')$$, 'all is forgotten');
select results_eq($$select target::text, pending, first_id, dead from delivery_lag order by 1$$,
          $$values ('KAFKA:msg', 0::bigint, null::bigint, 0::bigint), ('KAFKA:schd', 1, 2, 0), ('MAILBOX', 0, null, 0)$$, 'delivery_lag counts what is open');
select lives_ok($$select report_loop('relay', 'RUNNING', null, '2026-09-09 10:00:00+00'), report_loop('relay', 'FAILED', 'x', '2026-09-09 10:00:01+00'),
          report_loop('relay', 'FAILED', 'y', '2026-09-09 10:00:02+00')$$, 'a loop tells how it is');
select results_eq($$select state::text, since, beat_at, failures, last_error::text from loop_status where loop = 'relay'$$,
          $$values ('FAILED', timestamptz '2026-09-09 10:00:01+00', timestamptz '2026-09-09 10:00:02+00', 2, 'y')$$, 'since the first failure');
select throws_ok($$select report_loop('relay', 'FINE', null, null)$$, 'MX001', null, 'in known words');

select * from finish();
rollback;
