-- One call, one message: head, terminal calls, terminal status with backfill intent (US-03/1, US-03/6, D17).
begin;
set local search_path = msgx, tap;
select plan(49);

select tap.start();
create temp table r (step text primary key, j jsonb);

-- Who may be processed.
select throws_ok($$select process_message(77, tap.flop('ESTT', tap.rec('F1', '{"ESTT":"1"}')), null)$$, 'MX002',
                 'message 77 is not in the queue; enqueue it first', 'a message that nobody enqueued');
select is(tap.enqueue(1), 1::bigint, 'message 1');
select is(tap.enqueue(2), 2::bigint, 'message 2');
select is(tap.enqueue(3), 3::bigint, 'message 3');
select throws_ok($$select process_message(2, tap.flop('ESTT', tap.rec('F1', '{"ESTT":"1"}')), null)$$, 'MX501',
                 'message 2 is not the head of the queue; nobody overtakes, ask next_message again', 'nobody overtakes a PENDING message');
insert into r values ('ok', tap.attempt(1, tap.flop('ESTT', tap.rec('F1', '{"ESTT":"1"}'))));
select is((select j - 'result' from r where step = 'ok'), '{"message_id": 1, "status": "SUCCEEDED"}'::jsonb,
          'the outcome is data');
select is((select j -> 'result' from r where step = 'ok'),
          '{"records": 1, "written": 1, "created": 1, "events": 2}'::jsonb, 'with the result by name and count');

-- What stands in the row.
select results_eq($$select status::text, error_class::text, reason::text, attempts, next_attempt_at,
          processed_at from proc_state where message_id = 1$$,
                  $$values ('SUCCEEDED', null::text, null::text, 0, null::timestamptz, tap.now_of(1))$$,
                      'terminal status, no failure');
select results_eq($$select sndr::text, type::text, styp::text, seqn::text, dttm::text,
          identity_key::text from proc_state where message_id = 1$$,
                  $$values ('AODB', 'FLOP', 'ESTT', '1', '20260909080000', 'AODB|FLOP|ESTT|1')$$,
                      'META and identity are kept');
select results_eq($$select backfill_status::text, backfill_seq, backfill_attempts, backfill_next_at,
          backfilled_at from proc_state where message_id = 1$$,
                  $$values ('PENDING', 1, 0, null::timestamptz, null::timestamptz)$$,
                      'the backfill intent stands in the same transaction');
select is((select result from proc_state where message_id = 1), (select j -> 'result' from r where step = 'ok'),
          'the result is kept');

-- Terminal already.
insert into r values ('again', process_message(1, tap.flop('ESTT', tap.rec('F1', '{"ESTT":"9"}')), null));
select is((select j from r where step = 'again'), '{"message_id": 1, "status": "SUCCEEDED", "already": true}'::jsonb,
          'a terminal message answers with its status');
select is(tap.flight('F1') ->> 'ESTT', '1', 'and changes nothing');
select is((select count(*) from msg_event), 2::bigint, 'and adds no event');
select is((select backfill_seq from proc_state where message_id = 1), 1, 'nor a backfill intent');
select is(record_failure(1, null, null, null, 'INFRA', 'late', null),
          '{"message_id": 1, "status": "SUCCEEDED", "action": "next", "already": true}'::jsonb,
          'a failure never changes a terminal status');
select is((select reason::text from proc_state where message_id = 1), null, 'nor the reason');

-- A FAILED message holds the head.
insert into r values ('fail', tap.attempt(2, tap.flop('ZZZZ', tap.rec('F1', '{"ESTT":"2"}'))));
select is((select j ->> 'status' from r where step = 'fail'), 'FAILED', 'an unknown kind fails');
select is((select message_id from next_message(null)), 2::bigint, 'the failed message is still the head');
select throws_ok($$select process_message(3, tap.flop('ESTT', tap.rec('F1', '{"ESTT":"3"}')), null)$$, 'MX501', null,
          'nobody overtakes a FAILED message');
select is(tap.attempt(2, tap.flop('ESTT', tap.rec('F1', '{"ESTT":"2"}'))) ->> 'status', 'SUCCEEDED',
          'a retry may succeed');
select results_eq($$select status::text, attempts, error_class::text, last_error_class::text,
          reason::text from proc_state where message_id = 2$$,
                  $$values ('SUCCEEDED', 0, null::text, null::text, null::text)$$,
                      'success wipes attempts, class and reason');
select is(tap.attempt(3, tap.flop('ESTT', tap.rec('F1', '{"ESTT":"3"}'))) ->> 'status', 'SUCCEEDED',
          'then the next one goes');

-- Routing is exact, other than ignoring (contract 1).
select is(tap.outcome(tap.with_meta(tap.flop('ESTT', tap.rec('F1', '{"ESTT":"1"}')), '{"TYPE":"flop"}')),
          'DEAD/EXHAUSTED MX103', 'TYPE in lower case is another type');
select is(tap.outcome(tap.flop('estt', tap.rec('F1', '{"ESTT":"1"}'))), 'DEAD/EXHAUSTED MX103',
          'STYP in lower case is another kind');
select is(tap.outcome(tap.schd('DELT', '09SEP26', tap.rec('F1'))), 'DEAD/EXHAUSTED MX103',
          'an unknown SCHD subtype is unsupported');
select is(tap.outcome(tap.with_meta(tap.flop('ADD', tap.rec('F1')), '{"TYPE":"AIRL"}')), 'DEAD/EXHAUSTED MX103',
          'reference data is unsupported');
select is(tap.outcome(tap.with_meta(tap.flop('X', tap.rec('F1')), '{"TYPE":"X"}')), 'DEAD/EXHAUSTED MX103',
          'an unknown TYPE is unsupported');
select matches(tap.reason(), '^message [0-9]+: kind X/X is not supported$', 'the reason names message and kind');
select is(tap.outcome(tap.with_meta(tap.fdel('F1'), '{"TYPE":"FDEL","STYP":"anything"}')), 'SUCCEEDED',
          'TYPE FDEL is a deletion whatever its STYP');
select is(tap.flids(), '{}'::text[], 'the flight is gone');

-- META.
select is(tap.outcome('{"meta":{"SNDR":"A","STYP":"ESTT"},"flights":[]}'), 'DEAD/MALFORMED MX101', 'no TYPE');
select is(tap.outcome('{"meta":{"SNDR":"A","TYPE":"FLOP","STYP":""},"flights":[]}'), 'DEAD/MALFORMED MX101',
          'an empty STYP');
select is(tap.outcome(tap.with_meta(tap.flop('ESTT', tap.rec('F1', '{"ESTT":"1"}')), '{"SNDR":""}')),
          'DEAD/MALFORMED MX101', 'an empty SNDR');
select is(tap.outcome(tap.with_meta(tap.flop('ESTT', tap.rec('F1', '{"ESTT":"1"}')), '{"SEQN":""}')),
          'DEAD/MALFORMED MX101', 'an empty SEQN');
select is(tap.outcome(tap.with_meta(tap.flop('ESTT', tap.rec('F1', '{"ESTT":"1"}')), '{"SEQN":"12a"}')),
          'DEAD/MALFORMED MX101', 'a SEQN that is no number');
select is(tap.outcome(tap.with_meta(tap.flop('ESTT', tap.rec('F1', '{"ESTT":"1"}')), '{"SEQN":"1234567890123456789"}')),
          'DEAD/MALFORMED MX101', 'a SEQN of 19 digits');
select is(tap.outcome(tap.with_meta(tap.flop('ESTT', tap.rec('F1', '{"ESTT":"1"}')),
          jsonb_build_object('SNDR', repeat('x', 201)))), 'DEAD/MALFORMED MX102', 'a SNDR of 201 characters');
select is(tap.outcome(tap.with_meta(tap.flop('ESTT', tap.rec('F1', '{"ESTT":"1"}')),
          jsonb_build_object('SNDR', repeat('x', 200)))), 'SUCCEEDED', 'a SNDR of 200 characters is fine');
select is(tap.outcome('{}'), 'DEAD/MALFORMED MX101', 'a command without META');
select is(tap.outcome('[]'), 'DEAD/MALFORMED MX101', 'a command that is no object');
select is((select count(*) from proc_state where status in ('PENDING', 'FAILED')), 0::bigint, 'nothing hangs');

-- The body could not be decoded, META could.
select is(tap.outcome('{"meta":{"SNDR":"A","TYPE":"FLOP","STYP":"ESTT"},"error":{"reason":"tag X: zero among others"}}'),
          'DEAD/MALFORMED MX101', 'an error of the body is MALFORMED');
select matches(tap.reason(), '^message [0-9]+: tag X: zero among others$', 'its reason is kept');
select is(tap.outcome('{"meta":{"SNDR":"A","TYPE":"FLOP","STYP":"ESTT"},"error":{"reason":"too deep","capacity":true}}'),
          'DEAD/MALFORMED MX102', 'or capacity');
select is((select count(*) from message_identity where message_id = tap.last_id()), 0::bigint, 'it binds no identity');

-- The clock.
select lives_ok($$select tap.enqueue(1000)$$, 'one more');
select is(process_message(1000, tap.with_meta(tap.flop('ESTT', tap.rec('F9', '{"ESTT":"1"}')), '{"SEQN":"1000"}'),
          null) ->> 'status', 'SUCCEEDED', 'p_now may be null');
select ok((select processed_at between now() and clock_timestamp() from proc_state where message_id = 1000),
          'then the clock is read');

select * from finish();
rollback;
