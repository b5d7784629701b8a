-- A member of a current list without row and tombstone: state is lost (D25, US-03/8).
begin;
set local search_path = msgx, tap;
select plan(32);

select tap.start();
select tap.given(tap.plan_of('09SEP26', 'A', 'B', 'C'), tap.fdel('C'));
create temp table r (step text primary key, j jsonb);
select is((select count(*) from _lost_members(null)), 0::bigint, 'a deleted member has a tombstone: nothing is lost');
select is(tap.outcome(tap.flop('ESTT', tap.rec('C', '{"ESTT":"1"}'))), 'SUCCEEDED', 'a FLOP for it is fine');

-- A row disappears behind our back.
delete from flight_schd where flid in ('A', 'B');
select set_eq('select _lost_members(null)', array['A', 'B'], 'two flights are lost');
select set_eq($$select _lost_members(array['B', 'C', 'X'])$$, array['B'], 'asked by FLID');
select is((select array_agg(subject order by subject) from consistency_check where anomaly = 'lost-member'),
          array['A', 'B'], 'the consistency check shows them');
insert into r values ('flop', tap.once(tap.flop('ESTT', tap.rec('A', '{"ESTT":"1"}'))));
select is((select j ->> 'sqlstate' from r where step = 'flop'), 'MX901',
          'a FLOP that misses one of them does not take it for a missing flight');
select is((select (j ->> 'detail')::jsonb from r where step = 'flop'), '{"flids": ["A"]}'::jsonb,
          'the detail names it');
select matches((select j ->> 'error' from r where step = 'flop'), 'message [0-9]+, flight A: state is lost',
          'so does the text');
select is((select status::text from proc_state where message_id = tap.last_id()), 'PENDING',
          'the message is not charged');
select is(tap.flids(), '{}'::text[], 'nothing is created');
insert into r values ('many', tap.attempt(tap.last_id(), tap.flop('ESTT', tap.rec('N', '{"ESTT":"1"}'),
    tap.rec('B', '{"ESTT":"1"}'))));
select is((select j ->> 'sqlstate' from r where step = 'many'), 'MX901', 'one of several records is enough');
insert into r values ('ignore', tap.attempt(tap.last_id(), tap.flop('CNCL', tap.rec('B', '{"CNCL":"Y"}'))));
select is((select j ->> 'sqlstate' from r where step = 'ignore'), 'MX901',
          'also for a kind that ignores missing flights');
insert into r values ('fdel', tap.attempt(tap.last_id(), tap.fdel('A')));
select is((select j ->> 'sqlstate' from r where step = 'fdel'), 'MX901', 'a deletion that misses it stops too');
insert into r values ('other', tap.attempt(tap.last_id(), tap.flop('ESTT', tap.rec('N', '{"ESTT":"1"}'))));
select is((select j ->> 'status' from r where step = 'other'), 'SUCCEEDED', 'a flight of no list may be missing');

-- At start.
update pipeline_lock set released_at = now();
select throws_ok('select acquire_writer(null)', 'MX901',
          'state is lost: 2 flights of a current list have neither a row nor a tombstone (first: A); restore the database, or call acknowledge_state_loss',
          'no writer starts on lost state');
select is((select writer_pid is not null and released_at is not null from pipeline_lock), true,
          'the right is not taken');

-- Acknowledge.
select throws_ok($$select acknowledge_state_loss('', 'r', null)$$, 'MX001', null, 'an operator is needed');
select throws_ok($$select acknowledge_state_loss('o', '  ', null)$$, 'MX001', null, 'a reason is needed');
select throws_ok($$select acknowledge_state_loss(null, null, null)$$, 'MX001', null, 'both are needed');
select is(acknowledge_state_loss('op', 'disk gone', tap.now_of(50)), '{"lost": 2, "states": 2, "list_rows": 3}'::jsonb,
          'the loss is accepted');
select results_eq('select done_at, action::text, operator::text, session_name::text, reason::text, detail from operator_audit',
                  $$values (tap.now_of(50), 'acknowledge_state_loss', 'op', session_user::text collate "default",
                      'disk gone', '{"lost": 2, "states": 2, "list_rows": 3}'::jsonb)$$, 'it is audited');
select is((select count(*) from schd_gen_flid), 0::bigint, 'the lists are empty');
select is((select version from schd_gen), 1::bigint, 'the ledger stays');
select is((select epoch from pipeline_lock), 2, 'a new epoch begins');
select is(acquire_writer(null), '{"epoch": 2, "unclean": false}'::jsonb, 'the writer starts');
select is(tap.outcome(tap.plan_of('09SEP26', 'A', 'D')), 'SUCCEEDED', 'the next plan rebuilds');
select is(tap.flids(), array['A', 'D', 'N'], 'the flights of the plan are there');
select is((select version from schd_gen), 2::bigint, 'as the next version');
select is((select count(*) from _lost_members(null)), 0::bigint, 'nothing is lost');

-- Nothing lost: the lists are still needed.
select is(acknowledge_state_loss('op', 'a typo', null), '{"lost": 0, "states": 0, "list_rows": 0}'::jsonb, 'nothing is accepted');
select is((select count(*) from schd_gen_flid), 2::bigint, 'the lists stay');
select is((select epoch from pipeline_lock), 2, 'and so does the epoch');

select * from finish();
rollback;
