-- Twenty reused identities in a row stop the pump: the sender numbers anew (D15).
begin;
set local search_path = msgx, tap;
select plan(10);

select tap.start();
create function pg_temp.e(p_estt text, p_seqn text) returns jsonb
language sql immutable
as $$ select tap.with_meta(tap.flop('ESTT', tap.rec('F1', jsonb_build_object('ESTT', p_estt))),
    jsonb_build_object('SEQN', p_seqn)) $$;
create temp table r (n integer primary key, j jsonb);

select tap.given(pg_temp.e('0', '1'), pg_temp.e('0', '2'));
insert into r select g, tap.send(pg_temp.e('x', '1')) from generate_series(1, 19) g;
select is((select count(*) from r where j ->> 'status' = 'SKIPPED' and not j ? 'action'), 19::bigint, 'nineteen go by');
select is((select j -> 'result' from r where n = 19), '{"reused_run": 19}'::jsonb, 'they are counted');
insert into r values (20, tap.send(pg_temp.e('x', '1')));
select is((select j ->> 'action' from r where n = 20), 'stop', 'the twentieth stops the pump');
select is((select j ->> 'status' from r where n = 20), 'SKIPPED', 'it is SKIPPED all the same');
insert into r values (21, tap.send(pg_temp.e('x', '1')));
select is((select j ->> 'action' from r where n = 21), null, 'a pump that is started again goes on');
insert into r select 100 + g, tap.send(pg_temp.e('x', '1')) from generate_series(1, 19) g;
select is((select j ->> 'action' from r where n = 119), 'stop', 'and stops after twenty more');

-- Anything between breaks the run.
select tap.given(pg_temp.e('0', '3'));
insert into r select 200 + g, tap.send(pg_temp.e('x', '1')) from generate_series(1, 19) g;
insert into r values (220, tap.send(pg_temp.e('0', '2')));
select matches((select j ->> 'reason' from r where n = 220), '^duplicate: ', 'a plain duplicate between');
insert into r select 300 + g, tap.send(pg_temp.e('x', '1')) from generate_series(1, 5) g;
select is((select count(*) from r where n > 200 and j ? 'action'), 0::bigint, 'breaks the run');
select is((select j -> 'result' from r where n = 305), '{"reused_run": 5}'::jsonb, 'the count starts anew');

-- With identity.conflict = dead every one is DEAD and nothing stops.
select tap.set('identity.conflict', 'dead');
insert into r select 400 + g, tap.send(pg_temp.e('x', '1')) from generate_series(1, 20) g;
select is((select count(*) from r where n > 400 and j ->> 'status' = 'DEAD' and not j ? 'action'), 20::bigint,
          'DEAD ones are seen as they are');

select * from finish();
rollback;
