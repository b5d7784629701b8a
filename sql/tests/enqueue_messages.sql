-- Taking messages into the queue is idempotent by id (US-01/2, D20, MX2 part of D38).
begin;
set local search_path = msgx, tap;
select plan(28);

-- New messages.
select is(enqueue_messages('mailbox', array[11, 12], array['a'::bytea, 'b'], array['bytes', 'text'],
                           array[timestamptz '2026-09-09 01:00:00+00', null], timestamptz '2026-09-09 02:00:00+00'),
          '{"new": 2, "known": 0}'::jsonb, 'two new messages are taken');
select results_eq($$select message_id, source::text, status::text, attempts,
          backfill_status::text from proc_state order by message_id$$,
                  $$values (11::bigint, 'mailbox', 'PENDING', 0, 'NONE'), (12, 'mailbox', 'PENDING', 0, 'NONE')$$,
                      'they are PENDING, without attempt and without backfill intent');
select is((select received_at from proc_state where message_id = 11), timestamptz '2026-09-09 01:00:00+00',
          'the receive time is kept');
select is((select received_at from proc_state where message_id = 12), timestamptz '2026-09-09 02:00:00+00',
          'a missing receive time is p_now');
select is((select enqueued_at from proc_state where message_id = 11), timestamptz '2026-09-09 02:00:00+00',
          'enqueued_at is p_now');
select is((select raw_hash from proc_state where message_id = 11), sha256('a'::bytea),
          'the hash is SHA-256 of the bytes');
select results_eq('select message_id, payload, encoding::text from message_raw order by message_id',
                  $$values (11::bigint, 'a'::bytea, 'bytes'), (12, 'b'::bytea, 'text')$$,
                      'the bytes and their encoding are kept');
select is((select processed_at from proc_state where message_id = 11), null, 'not processed yet');

-- The same again.
select is(enqueue_messages('mailbox', array[11, 12], array['a'::bytea, 'b'], array['bytes', 'text'], null, null),
          '{"new": 0, "known": 2}'::jsonb, 'the same ids and bytes again are known');
select is((select count(*) from proc_state), 2::bigint, 'and add no row');
select is((select received_at from proc_state where message_id = 12), timestamptz '2026-09-09 02:00:00+00',
          'and change none');
select is(enqueue_messages('mailbox', array[13, 12], array['c'::bytea, 'b'], array['bytes', 'text'], null, null),
          '{"new": 1, "known": 1}'::jsonb, 'new and known in one call, in any order');

-- Other bytes under a known id.
select throws_ok($$select enqueue_messages('mailbox', array[14, 12], array['d'::bytea, 'B'], array['bytes', 'text'],
          null, null)$$,
                 'MX202', 'message 12 is already here with other bytes; ids are never reused, so nothing of this call was taken',
                     'other bytes under a known id are refused');
select is((select count(*) from proc_state where message_id = 14), 0::bigint, 'and nothing of that call is taken');
select is((select payload from message_raw where message_id = 12), 'b'::bytea, 'the original stays');
select throws_ok($$select enqueue_messages('mailbox', array[12], array[''::bytea], array['text'], null, null)$$,
          'MX202', null, 'no bytes are other bytes too');

-- Callers.
select throws_ok($$select enqueue_messages('m', array[1, 2], array['a'::bytea], array['text', 'text'], null, null)$$,
          'MX001', null, 'payloads of another length');
select throws_ok($$select enqueue_messages('m', array[1], array['a'::bytea], array['text', 'text'], null, null)$$,
          'MX001', null, 'encodings of another length');
select throws_ok($$select enqueue_messages('m', array[1], array['a'::bytea], array['text'], array[now(), now()],
          null)$$, 'MX001', null, 'receive times of another length');
select throws_ok($$select enqueue_messages('m', array[1], array['a'::bytea], array['utf8'], null, null)$$, 'MX001',
          null, 'an unknown encoding');
select throws_ok($$select enqueue_messages('m', array[null::bigint], array['a'::bytea], array['text'], null, null)$$,
          'MX001', null, 'an id that is null');
select is(enqueue_messages('m', '{}', '{}', '{}', '{}', null), '{"new": 0, "known": 0}'::jsonb, 'nothing is fine');
select is(enqueue_messages('m', '{}', '{}', '{}', null, null), '{"new": 0, "known": 0}'::jsonb,
          'nothing without receive times is fine');

-- A clock is read when none is given.
select is(enqueue_messages('m', array[20], array['a'::bytea], array['text'], null, null),
          '{"new": 1, "known": 0}'::jsonb, 'p_now may be null');
select ok((select enqueued_at between now() and clock_timestamp() from proc_state where message_id = 20),
          'then the clock is read');

-- A terminal message stays known.
select tap.start();
select is(tap.attempt(11, tap.flop('ESTT', tap.rec('F1', '{"ESTT":"1"}'))) ->> 'status', 'SUCCEEDED',
          'message 11 is processed');
select is(enqueue_messages('mailbox', array[11], array['a'::bytea], array['bytes'], null, null),
          '{"new": 0, "known": 1}'::jsonb, 'a processed message is known');
select is((select status::text from proc_state where message_id = 11), 'SUCCEEDED', 'and stays processed');

select * from finish();
rollback;
