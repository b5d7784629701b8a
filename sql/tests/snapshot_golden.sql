-- The scenario of FS 3.3, step by step (FS-3.3-13).
begin;
set local search_path = msgx, tap;
select plan(30);

select tap.start();

-- M1: 9/9 {A, B}.
select is(tap.send(tap.plan_of('09SEP26', 'A', 'B')) -> 'result',
          '{"fday": "2026-09-09", "version": 1, "records": 2, "written": 2, "created": 2, "deleted": 0, "events": 2}'::jsonb,
          'M1 is the first version');
select results_eq('select fday, version, last_message_id, recs, applied_at from schd_gen',
          $$values (date '2026-09-09', 1::bigint, 1::bigint, 2, tap.now_of(1))$$, 'M1: ledger');
select is(tap.members('2026-09-09'), array['A', 'B'], 'M1: list');
select results_eq('select flid::text, fday, state_version, last_message_id from flight_schd order by flid',
          $$values ('A', date '2026-09-09', 1::bigint, 1::bigint), ('B', '2026-09-09', 1, 1)$$,
          'M1: A and B are written');
select is(tap.events(1), array['STATE A 1', 'STATE B 1'], 'M1: a state each, no notice');

-- M2: 9/9 {A, C}.
select is(tap.send(tap.plan_of('09SEP26', 'A', 'C')) -> 'result',
          '{"fday": "2026-09-09", "version": 2, "records": 2, "written": 2, "created": 1, "deleted": 1, "events": 3}'::jsonb,
          'M2 is the second version');
select results_eq('select fday, version, last_message_id from schd_gen',
          $$values (date '2026-09-09', 2::bigint, 2::bigint)$$, 'M2: ledger');
select is(tap.members('2026-09-09'), array['A', 'C'], 'M2: list');
select is(tap.flids(), array['A', 'C'], 'M2: B is deleted, C is new');
select results_eq('select flid::text, state_version, deleted_at, message_id from flight_tombstone',
          $$values ('B', 2::bigint, tap.now_of(2), 2::bigint)$$, 'M2: B left a tombstone with the next version');
select is(tap.events(2), array['STATE A 2', 'STATE C 1', 'TOMBSTONE B 2'],
          'M2: states in package order, then the deletion');

-- M3: 9/10 {C}.
select is(tap.send(tap.plan_of('10SEP26', 'C')) -> 'result' ->> 'version', '1',
          'M3 is the first version of the next day');
select results_eq('select fday, version, last_message_id from schd_gen order by fday',
          $$values (date '2026-09-09', 2::bigint, 2::bigint), ('2026-09-10', 1, 3)$$, 'M3: the other day stays');
select is(tap.members('2026-09-10'), array['C'], 'M3: list');
select is(tap.members('2026-09-09'), array['A', 'C'], 'M3: the old list still names C');
select is((select fday from flight_schd where flid = 'C'), date '2026-09-10', 'M3: C belongs to the next day');
select is(tap.version('C'), 2::bigint, 'M3: C took a version');

-- M4: 9/9 {A}.
select is(tap.send(tap.plan_of('09SEP26', 'A')) -> 'result',
          '{"fday": "2026-09-09", "version": 3, "records": 1, "written": 1, "created": 0, "deleted": 0, "events": 1}'::jsonb,
          'M4 deletes nothing');
select is(tap.members('2026-09-09'), array['A'], 'M4: list');
select is(tap.members('2026-09-10'), array['C'], 'M4: the next day is untouched');
select is(tap.flids(), array['A', 'C'], 'M4: C stays');
select is(tap.version('C'), 2::bigint, 'M4: C is not touched');
select is((select count(*) from flight_tombstone where flid = 'C'), 0::bigint, 'M4: no tombstone');
select is(tap.events(4), array['STATE A 3'], 'M4: no deletion event');

-- M4 comes into the check for a replay once more.
update proc_state set status = 'PENDING', processed_at = null where message_id = 4;
update pipeline_lock set queue_floor = 0;
create temp table before as select tap.content() as c;
select is(tap.attempt(4, tap.plan_of('09SEP26', 'A')) - 'message_id',
          '{"status": "SUCCEEDED", "result": {"fday": "2026-09-09", "version": 3, "replayed": true}}'::jsonb,
          'the latest plan again is short-circuited');
select is(tap.changed((select c from before)), array['proc_state'], 'nothing but its own row changes');
select is((select (backfill_status, backfill_seq)::text from proc_state where message_id = 4), '(PENDING,2)',
          'it is marked in the mailbox again');

-- A plan that is not the latest is not short-circuited.
update proc_state set status = 'PENDING', processed_at = null where message_id = 2;
select is(tap.attempt(2, tap.plan_of('09SEP26', 'A', 'C')) -> 'result' ->> 'version', '4',
          'an older plan that is released by hand runs like any plan');
select is((select fday from flight_schd where flid = 'C'), date '2026-09-09',
          'and takes C back: the latest message wins');

-- The same package in another message is a new version.
select is(tap.send(tap.plan_of('09SEP26', 'A', 'C')) -> 'result' ->> 'version', '5',
          'a new message with the same plan counts');

select * from finish();
rollback;
