-- The identity of a message that fails: bound again by the failure, met again by a copy (D31).
begin;
set local search_path = msgx, tap;
select plan(35);

select tap.start();
create function pg_temp.e(p_styp text, p_seqn text) returns jsonb
language sql immutable
as $$ select tap.with_meta(tap.flop(p_styp, tap.rec('F1', '{"ESTT":"1"}')), jsonb_build_object('SEQN', p_seqn)) $$;

-- MALFORMED binds none.
select is(tap.outcome(tap.with_meta(tap.flop('ESTT', tap.rec('F1')), '{"SEQN":"1"}')), 'DEAD/MALFORMED MX101',
          'a malformed message');
select is((select count(*) from message_identity), 0::bigint, 'binds no identity');
select is((select identity_key from proc_state where message_id = 1), null, 'nor shows one');
select is(tap.outcome(pg_temp.e('ESTT', '1')), 'SUCCEEDED', 'a corrected copy is processed');

-- UNSUPPORTED binds at its first failure.
select is(tap.once(pg_temp.e('MAXP', '2')) ->> 'status', 'FAILED', 'a disabled kind fails');
select tap.last_id() as failed \gset
select results_eq($$select message_id, payload_hash is not null,
          dttm::text from message_identity where identity_key = 'AODB|FLOP|MAXP|2'$$,
                  format($$values (%s::bigint, true, '20260909080000')$$, :failed),
                      'its identity is bound after the rollback');
select is((select identity_key::text from proc_state where message_id = :failed), 'AODB|FLOP|MAXP|2', 'and shown');
update flop_kind set enabled = true, keys = '{ESTT}' where styp = 'MAXP';
select is(tap.attempt(:failed, pg_temp.e('MAXP', '2')) ->> 'status', 'SUCCEEDED', 'the retry finds its own binding');
select is(tap.outcome(pg_temp.e('MAXP', '2')), 'SKIPPED', 'a copy is a duplicate');
select matches(tap.reason(), '^duplicate: ', 'a plain one');
update flop_kind set enabled = false where styp = 'MAXP';

-- A copy of a DEAD one.
select is(tap.outcome(pg_temp.e('MAXP', '3')), 'DEAD/EXHAUSTED MX103', 'a message that dies');
select tap.last_id() as dead \gset
select is(tap.send(pg_temp.e('MAXP', '3')) - 'message_id' - 'reason',
          jsonb_build_object('status', 'SKIPPED', 'duplicate_of', :dead), 'its copy is SKIPPED');
select matches(tap.reason(), '^duplicate-of-dead: message ' || :dead, 'reason duplicate-of-dead');
select is(tap.outcome(pg_temp.e('MAXP', '3') || '{"flights":[{"FLID":"F1","set":{"ESTT":"7"}}]}'), 'SKIPPED',
          'other content too');
select matches(tap.reason(), '^duplicate-of-dead: ', 'duplicate-of-dead beats identity-reused');
select is((select result from proc_state where message_id = tap.last_id()), null, 'it does not count as reused');
select is((select count(*) from message_identity where identity_key = 'AODB|FLOP|MAXP|3' and message_id = :dead),
          1::bigint, 'the dead one stays the holder');
select is((select array_agg(kind order by kind) from duplicate_count), array['duplicate', 'duplicate-of-dead'],
          'the kinds are counted apart');

-- Takeover.
select tap.set('identity.of_dead', 'takeover');
update flop_kind set enabled = true where styp = 'MAXP';
select is(tap.outcome(pg_temp.e('MAXP', '3') || '{"flights":[{"FLID":"F1","set":{"ESTT":"7"}}]}'), 'SUCCEEDED',
          'takeover: the copy is processed');
select is((select message_id from message_identity where identity_key = 'AODB|FLOP|MAXP|3'), tap.last_id(),
          'takeover: it is the holder');
select is(tap.flight('F1') ->> 'ESTT', '7', 'takeover: its content counts');
select is(tap.outcome(pg_temp.e('MAXP', '3') || '{"flights":[{"FLID":"F1","set":{"ESTT":"7"}}]}'), 'SKIPPED',
          'takeover: a copy of the living one is a duplicate');

-- INFRA and CODEC_ERROR bind as well.
select tap.queue(100, 104);
select is(record_failure(100, tap.meta('FLOP', 'ESTT') || '{"SEQN":"9"}', null, 'XX000', null, 'x',
          tap.now_of(100)) ->> 'status', 'FAILED', 'INFRA');
select results_eq($$select message_id, payload_hash from message_identity where identity_key = 'AODB|FLOP|ESTT|9'$$,
          $$values (100::bigint, null::bytea)$$, 'INFRA binds, here without content');
select is(tap.attempt(100, pg_temp.e('ESTT', '9')) ->> 'status', 'SUCCEEDED', 'the retry succeeds');
select is((select payload_hash from message_identity where message_id = 100),
          (select payload_hash from proc_state where message_id = 100), 'and leaves the hash of what was processed');
select is(tap.attempt(101, pg_temp.e('ESTT', '9')) ->> 'status', 'SKIPPED', 'a copy');
select matches(tap.reason(101), '^duplicate: ', 'is a plain duplicate, not a reused identity');
select is(record_failure(102, tap.meta('FLOP', 'ESTT') || '{"SEQN":"10"}', '{"flights":[]}', null, 'CODEC_ERROR', 'x',
          tap.now_of(102)) ->> 'status', 'FAILED', 'CODEC_ERROR');
select is((select message_id from message_identity where identity_key = 'AODB|FLOP|ESTT|10'), 102::bigint,
          'CODEC_ERROR binds');
select is(record_failure(102, null, null, null, 'MALFORMED', 'x', tap.now_of(102)) ->> 'status', 'DEAD', 'and ends');
select is(record_failure(103, tap.meta('FLOP', 'ESTT'), null, null, 'INFRA', 'x', tap.now_of(103)) ->> 'status',
          'FAILED', 'META without SEQN');
select is((select count(*) from message_identity where message_id = 103), 0::bigint, 'binds none');
select is(record_failure(103, tap.meta('FLOP', 'ESTT') || '{"SEQN":"9"}', null, null, 'INFRA', 'x',
          tap.now_of(103)) ->> 'status', 'FAILED', 'an identity that another message holds');
select is((select message_id from message_identity where identity_key = 'AODB|FLOP|ESTT|9'), 100::bigint,
          'stays with its holder');

select * from finish();
rollback;
