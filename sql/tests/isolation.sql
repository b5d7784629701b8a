-- What is read after a lock must be newer than the lock: any other isolation level is refused (contract 4).
begin;
set local transaction_isolation = 'repeatable read';
set local search_path = msgx, tap;
select plan(10);

select throws_ok($$select acquire_writer(null)$$, 'MX001',
          'msgx needs transactions that are read committed, this one is repeatable read; set default_transaction_isolation to read committed', 'the writer');
select throws_ok($$select process_message(1, '{}', null)$$, 'MX001', null, 'a message');
select throws_ok($$select enqueue_messages('s', array[1], array['a'::bytea], array['text'], null, null)$$, 'MX001', null, 'the queue');
select throws_ok($$select claim_events('KAFKA:msg', md5('a')::uuid, 1, 60, null)$$, 'MX001', null, 'a claim of events');
select throws_ok($$select confirm_events('KAFKA:msg', md5('a')::uuid, array['A'], array[1]::bigint[], null)$$, 'MX001', null, 'their confirmation');
select throws_ok($$select claim_backfill('s', md5('a')::uuid, 1, 60, null)$$, 'MX001', null, 'a claim of marks');
select throws_ok($$select confirm_backfill(md5('a')::uuid, array[1]::bigint[], array[1], null)$$, 'MX001', null, 'their confirmation');
select throws_ok($$select set_setting('kafka.tombstone', 'null', null)$$, 'MX001', null, 'a setting');
select throws_ok($$select redeliver_events(null, 'who', 'why', null)$$, 'MX001', null, 'an operator');
select lives_ok($$select * from flight_projection(null)$$, 'reading is free');

select * from finish();
rollback;
