-- One writer: acquire, release, unclean end, lost state (OPS-1, D25, D35).
begin;
set local search_path = msgx, tap;
select plan(38);

-- Nobody has the right yet.
select is((select writer_pid from pipeline_lock), null, 'a new schema has no writer');
select tap.queue(1, 2);
select throws_ok($$select process_message(1, tap.flop('ESTT', tap.rec('F1', '{"ESTT":"1"}')), null)$$, 'MX401', null,
          'process_message needs the right');
select throws_ok($$select record_failure(1, null, null, null, 'INFRA', 'x', null)$$, 'MX401', null,
          'record_failure needs the right');
select is(release_writer(null), false, 'there is nothing to release');

-- A clean start.
select is(acquire_writer(tap.now_of(1)), '{"epoch": 1, "unclean": false}'::jsonb, 'the right is taken');
select is((select writer_pid from pipeline_lock), pg_backend_pid(), 'by this session');
select is((select released_at from pipeline_lock), null, 'it is not released');
select is((select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid() and granted
            and ((classid::bigint << 32) | objid::bigint) = _writer_key()), 1::bigint,
                'a session lock stands behind it');
select is((select attempts from proc_state where message_id = 1), 0, 'a clean start charges nobody');
select is(acquire_writer(tap.now_of(1)), '{"epoch": 1, "unclean": false, "already": true}'::jsonb,
          'taking it again is fine');
select is(tap.attempt(1, tap.flop('ESTT', tap.rec('F1', '{"ESTT":"1"}'))) ->> 'status', 'SUCCEEDED',
          'now messages are processed');
select is(release_writer(tap.now_of(3)), true, 'the right is given back');
select is((select released_at from pipeline_lock), tap.now_of(3), 'at that instant');
select is((select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid() and granted), 0::bigint,
          'and the session lock is gone');
select is(release_writer(null), false, 'once');
select throws_ok($$select process_message(2, tap.flop('ESTT', tap.rec('F1', '{"ESTT":"1"}')), null)$$, 'MX401', null,
          'without it nothing is processed');
select is(acquire_writer(null), '{"epoch": 1, "unclean": false}'::jsonb, 'after a clean end the start is clean');

-- Another session, a reused pid, a pooler.
update pipeline_lock set writer_pid = 1;
select throws_ok($$select process_message(2, tap.flop('ESTT', tap.rec('F1', '{"ESTT":"1"}')), null)$$, 'MX401', null,
          'another pid is the writer');
select is(release_writer(null), false, 'which this session cannot release');
update pipeline_lock set writer_pid = pg_backend_pid(), writer_started = writer_started - interval '1 microsecond';
select throws_ok($$select process_message(2, tap.flop('ESTT', tap.rec('F1', '{"ESTT":"1"}')), null)$$, 'MX401', null,
          'the same pid with another start is another session');
update pipeline_lock set writer_started = writer_started + interval '1 microsecond';
select is((select tap.state_of($$select record_failure(2, null, null, '40001', null, 'x', tap.now_of(2))$$)), '00000',
          'this session is the writer again');
select lives_ok($$select set_config('msgx.writer_started', '', false)$$, 'a pooler hands the session to somebody else');
select throws_ok($$select record_failure(2, null, null, null, 'INFRA', 'x', null)$$, 'MX401', null,
          'who is not the writer');
select throws_ok($$select process_message(2, '{}', null)$$, 'MX401', null, 'whatever it sends');

-- A session that writes for another airport too.
select is(acquire_writer(tap.now_of(4)) ->> 'unclean', 'true', 'the session takes the right back');
select set_config('msgx.writer_started', current_setting('msgx.writer_started') || ' 1.5', false);
select is(tap.state_of($$select process_message(2, '{}', null)$$), 'MX101', 'the right of another schema takes nothing away');
select is(release_writer(null), true, 'it is given back');
select is(current_setting('msgx.writer_started'), '1.5', 'and the other one stays');

-- A right that an operator has released.
select is(acquire_writer(tap.now_of(4)) ->> 'unclean', 'false', 'and taken again');
update pipeline_lock set released_at = now();
select throws_ok($$select process_message(2, '{}', null)$$, 'MX401', null, 'a right that was released is none');
update proc_state set status = 'PENDING', attempts = 0 where message_id = 2;

-- An unclean end: the head is the suspect.
update pipeline_lock set writer_pid = 1, released_at = null;
select is(acquire_writer(tap.now_of(5)), '{"epoch": 1, "unclean": true, "suspect": 2}'::jsonb,
          'a writer that ended without release names a suspect');
select results_eq($$select status::text, attempts, error_class::text, last_error_class::text,
          next_attempt_at from proc_state where message_id = 2$$,
                  $$values ('FAILED', 1, 'INFRA', 'INFRA', tap.now_of(5) + interval '1 second')$$,
                      'the head is charged one attempt before it is decoded');
select matches(tap.reason(2), '^message 2 was the head when a writer ended', 'the reason says why');
update pipeline_lock set writer_pid = 1, released_at = null;
select is(acquire_writer(tap.now_of(6)) ->> 'suspect', '2', 'again');
select is((select attempts from proc_state where message_id = 2), 2, 'again charged');
do $$ begin for i in 3 .. 8 loop update pipeline_lock set writer_pid = 1,
    released_at = null; perform acquire_writer(tap.now_of(6)); end loop; end $$;
select results_eq($$select status::text, error_class::text, last_error_class::text,
          attempts from proc_state where message_id = 2$$,
                  $$values ('DEAD', 'EXHAUSTED', 'INFRA', 8)$$,
                      'a message that kills the driver ends DEAD: never a crash loop');
update pipeline_lock set writer_pid = 1, released_at = null;
select is(acquire_writer(null), '{"epoch": 1, "unclean": true}'::jsonb,
          'an unclean end with an empty queue has no suspect');

-- The row itself.
delete from pipeline_lock;
select throws_ok($$select record_failure(2, null, null, null, 'INFRA', 'x', null)$$, 'MX902', null,
          'a schema without the row is broken');

select * from finish();
rollback;
