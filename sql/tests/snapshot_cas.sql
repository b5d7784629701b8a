-- Compare-and-swap of the plan version: a plan that loses leaves nothing (FS-3.3-10, FS-4.2-14).
begin;
set local search_path = msgx, tap;
select plan(18);

select tap.start();

-- The routine alone.
select is(_advance_schd_gen('2026-09-01', null, 1, 5, tap.now_of(1)), 1::bigint,
          'the first plan of a day is version 1');
select is(_advance_schd_gen('2026-09-01', 1, 2, 6, tap.now_of(2)), 2::bigint, 'then the expected version plus 1');
select results_eq('select fday, version, last_message_id, recs, applied_at from schd_gen',
          $$values (date '2026-09-01', 2::bigint, 2::bigint, 6, tap.now_of(2))$$, 'with message, records and instant');
select throws_ok($$select _advance_schd_gen('2026-09-01', 1, 3, 6, now())$$, 'MX201',
          'message 3: the plan version of day 2026-09-01 is no longer 1; nothing was written, the message is retried',
          'an older version loses');
select throws_ok($$select _advance_schd_gen('2026-09-01', 3, 3, 6, now())$$, 'MX201', null, 'so does a later one');
select throws_ok($$select _advance_schd_gen('2026-09-01', null, 3, 6, now())$$, 'MX201',
          'message 3: the plan version of day 2026-09-01 is no longer absent; nothing was written, the message is retried',
          'and one that saw no plan');
select throws_ok($$select _advance_schd_gen('2026-09-02', 1, 3, 6, now())$$, 'MX201', null,
          'and one whose plan is gone');
select is((select (version, last_message_id)::text from schd_gen), '(2,2)', 'the ledger stays');

-- A whole message that loses: somebody else advances the version while it writes.
select tap.given(tap.dnld('09SEP26', tap.rec('A', '{"ESTT":"1"}', '{"GTDT":[{"GATE":"1"}]}'),
          tap.rec('B', '{"MAID":"Z"}')));
create function pg_temp.intrude() returns trigger language plpgsql as $$
begin
    update msgx.schd_gen set version = version + 1 where fday = '2026-09-09';
    return null;
end $$;
create trigger intrude after delete on flight_schd for each statement execute function pg_temp.intrude();
create temp table before as select tap.content() as c;
select tap.queue(100, 100);
create temp table r as select tap.attempt(100, tap.dnld('09SEP26', tap.rec('A', '{"ESTT":"2"}',
    '{"GTDT":[{"GATE":"2"},{"GATE":"3"}]}'), tap.rec('C'))) as j;
select is((select j ->> 'sqlstate' from r), 'MX201', 'the message loses');
select is((select j ->> 'status' from r), 'FAILED', 'it waits');
select is((select j -> 'attempts' from r), '0'::jsonb, 'no attempt is charged');
select is((select j ->> 'error_class' from r), 'INFRA', 'as INFRA');
select is(tap.changed((select c from before)), array['message_identity', 'message_raw', 'proc_state'],
          'nothing of the state is changed: flights, details, tombstones, list, ledger, outbox');
select is((select message_id from next_message(null)), 100::bigint, 'it holds the head');
drop trigger intrude on flight_schd;
select is(tap.attempt(100, tap.dnld('09SEP26', tap.rec('A', '{"ESTT":"2"}', '{"GTDT":[{"GATE":"2"},{"GATE":"3"}]}'),
          tap.rec('C'))) ->> 'status', 'SUCCEEDED', 'the retry reads again and succeeds');
select is(tap.flids(), array['A', 'C'], 'with the whole effect');
select is((select version from schd_gen where fday = '2026-09-09'), 2::bigint, 'the version advanced once');
select is((select attempts from proc_state where message_id = 100), 0, 'without attempts');

select * from finish();
rollback;
