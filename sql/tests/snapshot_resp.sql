-- An answer without an open request (D4, US-06).
begin;
set local search_path = msgx, tap;
select plan(10);

select tap.start();
select tap.given(tap.plan_of('09SEP26', 'A', 'B'));
select is(tap.send(tap.schd('RESP', '09SEP26', tap.rec('A', '{"ESTT":"1"}'))),
          '{"message_id": 2, "status": "SKIPPED", "reason": "resp-unmatched: message 2 answers no open request (request.resp_guard = strict)"}'::jsonb,
          'strict: SKIPPED with the reason');
select is(tap.flids(), array['A', 'B'], 'strict: nothing is written');
select is((select version from schd_gen), 1::bigint, 'strict: no new version');
select is(tap.events(2), '{}'::text[], 'strict: no event');
select is((select backfill_status::text from proc_state where message_id = 2), 'PENDING',
          'strict: it is marked in the mailbox');
select is((select message_id from message_identity where identity_key = 'AODB|SCHD|RESP|2'), 2::bigint,
          'strict: its identity is bound');
select is(tap.outcome(tap.schd('RESP', null)), 'SKIPPED', 'strict: its content is not even looked at');
select tap.set('request.resp_guard', 'lenient');
select is(tap.send(tap.schd('RESP', '09SEP26', tap.rec('A', '{"ESTT":"1"}'))) -> 'result',
          '{"fday": "2026-09-09", "version": 2, "records": 1, "written": 1, "created": 0, "deleted": 1, "events": 2}'::jsonb,
          'lenient: it lands like a download');
select is(tap.flids(), array['A'], 'lenient: with deletion');
select is(tap.outcome(tap.schd('RESP', null)), 'DEAD/MALFORMED MX101', 'lenient: with the same checks');

select * from finish();
rollback;
