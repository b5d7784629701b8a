-- Single flights outside a plan; equal content changes nothing (D24, FS-4.2-4).
begin;
set local search_path = msgx, tap;
select plan(38);

select tap.start();
select is(tap.send(tap.adft(tap.rec('A',
          '{"ESTT":"1","REMC":"","FDIV":{"DDES":"H","TEXT":""},"SRVT":"[{\"B\":\"x\",\"A\":\"y\"}]"}',
          '{"GTDT":[{"GTNO":"1","GATE":"A","GTYP":""},{"GTNO":"","GATE":""}]}'))),
          '{"message_id": 1, "status": "SUCCEEDED", "result": {"records": 1, "written": 1, "created": 1, "events": 2}}'::jsonb,
              'a flight of its own');
select is((select fday from flight_schd), null, 'it has no day');
select is((select count(*) from schd_gen) + (select count(*) from schd_gen_flid), 0::bigint, 'no ledger, no list');
select is((select payload from msg_event where kind = 'NOTICE'),
          '{"FLID":"A","MESSAGE_ID":1,"SNDR":"AODB","TYPE":"SCHD","STYP":"ADFT","SEQN":"1","DTTM":"20260909080000","CHANGED":["ESTT","FDIV","GTDT","REMC","SRVT"]}'::jsonb,
          'a notice with all keys carried, sorted');

-- Equal.
create function pg_temp.again(p_rec jsonb) returns text
language plpgsql
as $$
declare
    v_id bigint := tap.next_id();
    v_result jsonb := tap.send(tap.adft(p_rec)) -> 'result';
begin
    return coalesce(v_result ->> 'equal',
        '0') || ' equal, ' || (v_result ->> 'written') || ' written, ' || cardinality(tap.events(v_id)) || ' events, version ' || tap.version(p_rec ->> 'FLID');
end;
$$;
select is(pg_temp.again(tap.rec('A', s::jsonb, r::jsonb, c::jsonb)), '1 equal, 0 written, 0 events, version 1',
          'equal: ' || d)
  from (values
    ('the same', '{"ESTT":"1","REMC":"","FDIV":{"DDES":"H","TEXT":""},"SRVT":"[{\"B\":\"x\",\"A\":\"y\"}]"}',
        '{"GTDT":[{"GTNO":"1","GATE":"A","GTYP":""},{"GTNO":"","GATE":""}]}', null),
    ('a part of it', '{"ESTT":"1"}', null, null), ('nothing', '{}', null, null), ('nothing at all', null, null, null),
    ('empty is absent', '{"STD":"","REMC":""}', null, null),
        ('an object without its empty attribute', '{"FDIV":{"DDES":"H"}}', null, null),
    ('an empty object', '{"FRET":{"REID":"","TEXT":""}}', null, null),
        ('JSON in another order', '{"SRVT":"[{\"A\":\"y\", \"B\":\"x\"}]"}', null, null),
    ('items without their empty keys', null, '{"GTDT":[{"GTNO":"1","GATE":"A"},{}]}', null),
        ('an empty list for what is empty', null, '{"DELY":[]}', null),
    ('clearing what is empty', null, null, '["STD","DELY","FLAB","REMC"]')) v (d, s, r, c);
select is((select last_message_id from flight_schd where flid = 'A'), 1::bigint, 'none of them touched the row');
select is((select count(*) from proc_state where status = 'SUCCEEDED'), 12::bigint, 'all of them succeeded');

-- Not equal.
select is(pg_temp.again(tap.rec('A', s::jsonb, r::jsonb, c::jsonb)),
          format('0 equal, 1 written, 2 events, version %s', n), 'not equal: ' || d)
  from (values
    (2, 'another value', '{"ESTT":"2"}', null, null), (3, 'an empty value for a value', '{"ESTT":""}', null, null),
        (4, 'an attribute less', '{"FDIV":{"TEXT":"t"}}', null, null),
    (5, 'a list in another order', null, '{"GTDT":[{},{"GTNO":"1","GATE":"A"}]}', null),
        (6, 'a list that is longer', null, '{"GTDT":[{},{"GTNO":"1","GATE":"A"},{}]}', null),
    (7, 'a clear', null, null, '["SRVT"]'), (8, 'a list that is emptied', null, '{"GTDT":[]}', null),
        (9, 'a new field', '{"STD":"1"}', null, null),
    (10, 'other letters', '{"STD":"a"}', null, null), (11, 'other letters', '{"STD":"A"}', null, null),
        (12, 'a blank', '{"STD":"A "}', null, null)) v (n, d, s, r, c) order by n;

-- Several flights.
select is(tap.send(tap.adft(tap.rec('A', '{"STD":"A "}'), tap.rec('B', '{"STD":"1"}'), tap.rec('C'),
          tap.rec('A2'))) -> 'result', '{"records": 4, "written": 3, "created": 3, "equal": 1, "events": 6}'::jsonb,
          'each flight for itself');
select is(tap.events(tap.last_id()), array['NOTICE B 1', 'STATE B 1', 'NOTICE C 1', 'STATE C 1', 'NOTICE A2 1',
          'STATE A2 1'], 'events in package order');
select is((select payload -> 'CHANGED' from msg_event
          where message_id = tap.last_id() and flid = 'C' and kind = 'NOTICE'), '[]'::jsonb,
          'a bare record carries nothing');
select is(tap.send(tap.adft()) -> 'result', '{"records": 0, "written": 0, "created": 0, "events": 0}'::jsonb,
          'an ADFT without records is fine');

-- A flight of a plan keeps its day.
select tap.given(tap.plan_of('09SEP26', 'P'), tap.adft(tap.rec('P', '{"ESTT":"1"}')));
select is(tap.flight('P') ->> 'FDAY', '2026-09-09', 'the day stays');
select is(tap.flight('P') ->> 'MVIN', 'D', 'what it omits stays');
select is((select version from schd_gen), 1::bigint, 'no new generation');
select is((select recs from schd_gen), 1, 'nor another number of records');

-- The header day of an ADFT is not looked at.
select is(tap.outcome(tap.schd('ADFT', 'rubbish', tap.rec('Q', '{"ESTT":"1"}'))), 'SUCCEEDED',
          'a header day has no meaning here');
select is(tap.flight('Q') ? 'FDAY', false, 'and gives no day');

select * from finish();
rollback;
