-- The lookup of the head starts from a kept floor, which never hides a message (contract 3).
begin;
set local search_path = msgx, tap;
select plan(27);

select tap.start();
select is((select queue_floor from pipeline_lock), 0::bigint, 'an empty queue has floor 0');
select is(enqueue_messages('m', (select array_agg(g) from generate_series(1001, 1450) g),
          (select array_agg('x'::bytea) from generate_series(1, 450)),
                           (select array_agg('text'::text) from generate_series(1, 450)), null, tap.now_of(1)),
                               '{"new": 450, "known": 0}'::jsonb, '450 messages');
select is((select message_id from next_message(null)), 1001::bigint, 'the head is the smallest id');
select is(tap.attempt(1001, tap.flop('ESTT', tap.rec('F1', '{"ESTT":"1"}'))) ->> 'status', 'SUCCEEDED',
          'the head is processed');
select is((select queue_floor from pipeline_lock), 1001::bigint, 'the floor follows');
select is(tap.attempt(1002, tap.flop('ESTT', tap.rec('F1', '{"ESTT":"2"}'))) ->> 'status', 'SUCCEEDED',
          'the next is processed');
select is((select queue_floor from pipeline_lock), 1001::bigint, 'but in steps: the floor does not move each time');
select is((select message_id from next_message(null)), 1003::bigint, 'the head is right all the same');
select is((select count(*) from (select tap.attempt(g, tap.flop('ESTT', tap.rec('F1', '{"ESTT":"3"}'))) as r
          from generate_series(1003, 1202) g) t where r ->> 'status' = 'SUCCEEDED'),
          200::bigint, '200 more are processed');
select is((select queue_floor from pipeline_lock), 1201::bigint, 'the floor has moved one step');
select is((select message_id from next_message(null)), 1203::bigint, 'the head is right');

-- A smaller id that comes late.
select is(tap.enqueue(5), 5::bigint, 'a late message with a smaller id');
select is((select queue_floor from pipeline_lock), 5::bigint, 'the floor goes down');
select is((select message_id from next_message(null)), 5::bigint, 'it is the head');
select throws_ok($$select process_message(1203, tap.flop('ESTT', tap.rec('F1', '{"ESTT":"4"}')), null)$$, 'MX501', null,
          'nobody overtakes it');
select is(tap.attempt(5, tap.flop('ESTT', tap.rec('F2', '{"ESTT":"4"}'))) ->> 'status', 'SUCCEEDED',
          'it is processed at its turn by id');
select is((select message_id from next_message(null)), 1203::bigint, 'then the queue goes on');
select is(tap.enqueue(2000), 2000::bigint, 'a message at the end');
select is((select queue_floor from pipeline_lock), 5::bigint, 'does not move the floor');

-- A failure booked out of turn must not carry the floor over the head.
select is(tap.state_of($$select record_failure(1450, null, null, null, 'MALFORMED', 'x', null)$$), 'MX501',
          'a failure is only booked for the head');
select is((select message_id from next_message(null)), 1203::bigint, 'the head stays the head');
select is((select count(*) from proc_state where status in ('PENDING', 'FAILED') and message_id < (select queue_floor
          from pipeline_lock)), 0::bigint, 'nothing waits below the floor');

-- Becoming the writer looks at the whole queue.
update pipeline_lock set queue_floor = 1400, released_at = now();
select is(acquire_writer(null) -> 'unclean', 'false'::jsonb, 'the right is taken again');
select is((select queue_floor from pipeline_lock), 1203::bigint, 'and the floor is found anew');
delete from proc_state where status in ('PENDING', 'FAILED');
update pipeline_lock set queue_floor = 7, released_at = now();
select lives_ok('select acquire_writer(null)', 'the right is taken with an empty queue');
select is((select queue_floor from pipeline_lock), 1202::bigint, 'then the floor is the highest id');
select is((select count(*) from next_message(null)), 0::bigint, 'and there is no head');

select * from finish();
rollback;
