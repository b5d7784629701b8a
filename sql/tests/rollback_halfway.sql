-- A message that fails at any step leaves nothing (architecture invariant 1, FS-3.3-11, US-03/6).
begin;
set local search_path = msgx, tap;
select plan(32);

select tap.start();
create function pg_temp.fail() returns trigger language plpgsql as $$ begin raise exception using errcode = 'P0001',
    message = 'step fails'; end $$;
create function pg_temp.full(p_flid text, p_char text) returns jsonb language sql stable as $$
    select tap.rec(p_flid, jsonb_build_object('ESTT', p_char, 'MAID', 'M', 'FLNO', p_flid),
        (select jsonb_object_agg(f.tag, jsonb_build_array(jsonb_build_object(f.attrs[1], p_char)))
            from msgx.flight_field f where f.kind = 'collection'))
$$;
select tap.given(tap.plan_of('09SEP26', 'M', 'X'), tap.dnld('09SEP26', tap.rec('M'), tap.rec('X'), pg_temp.full('S',
          'a'), pg_temp.full('T', 'a')));

-- The step that fails: a trigger on one table at a time, for every kind of message.
create function pg_temp.broken(p_table text, p_event text, p_command jsonb) returns text
language plpgsql
as $$
declare
    v_id     bigint := tap.enqueue(tap.next_id());
    v_before jsonb;
    v_result jsonb;
    v_diff   text[];
begin
    execute format('create trigger broken before %s on msgx.%I for each row execute function pg_temp.fail()', p_event,
        p_table);
    v_before := tap.content();
    v_result := tap.attempt(v_id, p_command);
    v_diff := tap.changed(v_before);
    execute format('drop trigger broken on msgx.%I', p_table);
    perform msgx.record_failure(v_id, null, null, null, 'MALFORMED', 'end of test', tap.now_of(v_id));
    return (v_result ->> 'status') || ' ' || (v_result ->> 'sqlstate') || ' ' || v_diff::text;
end;
$$;
create temp table message (name text, command jsonb);
insert into message values
    ('plan', tap.dnld('09SEP26', tap.rec('M'), pg_temp.full('S', 'b'), tap.rec('N'))),
    ('flop', tap.flop('ESTT', pg_temp.full('S', 'c'), pg_temp.full('NEW', 'c'))),
    ('adft', tap.adft(pg_temp.full('S', 'd'), pg_temp.full('NEW', 'd'))),
    ('fdel', tap.fdel('S'));
select is(pg_temp.broken(t, e, m.command), 'FAILED P0001 {message_identity,proc_state}',
          format('%s fails at %s of %s', n, e, t))
  from (values ('plan', 'flight_schd', 'insert'), ('plan', 'flight_schd', 'update'), ('plan', 'flight_schd', 'delete'),
      ('plan', 'flight_tombstone', 'insert'),
               ('plan', 'schd_gen_flid', 'delete'), ('plan', 'schd_gen_flid', 'insert'), ('plan', 'schd_gen', 'update'),
                   ('plan', 'msg_event', 'insert'),
               ('plan', 'flight_gate', 'insert'), ('plan', 'flight_gate', 'delete'),
                   ('plan', 'flight_route_point', 'insert'), ('plan', 'flight_chock_op', 'insert'),
               ('flop', 'flight_schd', 'insert'), ('flop', 'flight_schd', 'update'), ('flop', 'flight_delay', 'insert'),
                   ('flop', 'flight_bridge_op', 'delete'), ('flop', 'msg_event', 'insert'),
               ('adft', 'flight_schd', 'insert'), ('adft', 'flight_checkin', 'insert'),
                   ('adft', 'flight_stand_plan', 'delete'), ('adft', 'msg_event', 'insert'),
               ('fdel', 'flight_tombstone', 'insert'), ('fdel', 'flight_belt', 'delete'),
                   ('fdel', 'flight_chute', 'delete'), ('fdel', 'flight_schd', 'delete'),
                   ('fdel', 'msg_event', 'insert')) v (n, t, e)
  join message m on m.name = v.n;

-- The last step of all: the terminal status.
create function pg_temp.fail_terminal() returns trigger language plpgsql as $$ begin if new.status = 'SUCCEEDED' then raise exception 'step fails'; end if; return new; end $$;
create function pg_temp.unfinished(p_command jsonb) returns text
language plpgsql
as $$
declare
    v_id     bigint := tap.enqueue(tap.next_id());
    v_before jsonb := tap.content();
    v_result jsonb;
    v_diff   text[];
begin
    create trigger broken before update on msgx.proc_state for each row execute function pg_temp.fail_terminal();
    v_result := tap.attempt(v_id, p_command);
    v_diff := tap.changed(v_before);
    drop trigger broken on msgx.proc_state;
    return (v_result ->> 'status') || ' ' || v_diff::text || ' ' || (tap.attempt(v_id, p_command) ->> 'status');
end;
$$;
select is(pg_temp.unfinished(m.command), 'FAILED {message_identity,proc_state} SUCCEEDED',
          format('%s fails at its terminal status; the retry has the whole effect', m.name)) from message m;
select is(tap.flids(), array['M', 'N', 'NEW'], 'what the messages say in the end');
select is((select count(*) from consistency_check), 0::bigint, 'and nothing is odd');

select * from finish();
rollback;
