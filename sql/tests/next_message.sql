-- The head with its bytes, due or not (FS-4.1-1, D14).
begin;
set local search_path = msgx, tap;
select plan(17);

select tap.start();
select is((select count(*) from next_message(null)), 0::bigint, 'an empty queue has no head');
select is(enqueue_messages('m', array[7, 3], array['seven'::bytea, 'three'], array['text', 'bytes'], null,
          tap.now_of(1)), '{"new": 2, "known": 0}'::jsonb, 'two messages');
select results_eq('select message_id, status::text, attempts, due, next_attempt_at, payload, encoding::text from next_message(tap.now_of(1))',
                  $$values (3::bigint, 'PENDING', 0, true, null::timestamptz, 'three'::bytea, 'bytes')$$,
                      'the smallest id, due at once, with its bytes');
select is(record_failure(3, null, null, null, 'INFRA', 'x', tap.now_of(1)) ->> 'status', 'FAILED', 'it fails');
select results_eq('select message_id, status::text, attempts, due, next_attempt_at from next_message(tap.now_of(1))',
                  $$values (3::bigint, 'FAILED', 1, false, tap.now_of(1) + interval '1 second')$$,
                      'it stays the head and is not due');
select is((select due from next_message(tap.now_of(1) + interval '999 milliseconds')), false,
          'not due a moment before');
select is((select due from next_message(tap.now_of(1) + interval '1 second')), true, 'due at the instant');
select is((select due from next_message(tap.now_of(1) + interval '1 hour')), true, 'due later');

-- A clock that went back.
select is((select due from next_message(tap.now_of(1) - interval '59 seconds')), false,
          'a clock a little behind waits');
select is((select due from next_message(tap.now_of(1) - interval '59.001 seconds')), true,
          'due beyond now + cap counts as due');
select is((select due from next_message(tap.now_of(1) - interval '1 year')), true,
          'a clock a year behind strands nothing');
select tap.set('pipeline.backoff_cap', '5');
select is((select due from next_message(tap.now_of(1) - interval '4 seconds')), false, 'the cap is the setting');
select is((select due from next_message(tap.now_of(1) - interval '4.001 seconds')), true, 'the cap is the setting');

-- The queue goes on.
select is(record_failure(3, null, null, null, 'MALFORMED', 'x', tap.now_of(1)) ->> 'status', 'DEAD', 'the head dies');
select is((select message_id from next_message(null)), 7::bigint, 'the next id is the head');
select is(tap.attempt(7, tap.flop('ESTT', tap.rec('F1', '{"ESTT":"1"}'))) ->> 'status', 'SUCCEEDED', 'it is processed');
select is((select count(*) from next_message(null)), 0::bigint, 'the queue is empty');

select * from finish();
rollback;
