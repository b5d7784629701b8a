-- Which error wins when several apply, and what a reason says (D40).
begin;
set local search_path = msgx, tap;
select plan(36);

select tap.start();
create function pg_temp.bad(p_command jsonb) returns text
language plpgsql
as $$
declare
    v_result jsonb := tap.send(p_command);
begin
    return (v_result ->> 'sqlstate') || ' ' || regexp_replace(v_result ->> 'error', '^message [0-9]+', 'message N');
end;
$$;
create temp table c (name text primary key, f jsonb);
insert into c values
    ('wide', tap.rec('F', jsonb_build_object('ESTT', repeat('x', 201)))),
    ('unknown', tap.rec('F', '{"ESTT":"1","XXXX":"1"}')),
    ('nokey', tap.rec('F', '{"ACTT":"1"}')),
    ('shape', tap.rec('F', '{"ESTT":{"a":"b"}}')),
    ('noflid', '{"set":{"ESTT":"1"}}'),
    ('ok', tap.rec('F', '{"ESTT":"1"}'));
create function pg_temp.f(variadic p_names text[]) returns jsonb
language sql stable
as $$ select tap.flop('ESTT', variadic (select array_agg(c.f order by n.ord)
    from unnest(p_names) with ordinality as n (name, ord) join c using (name))) $$;

-- Ignoring wins over everything but TYPE and STYP; META over the body; identity over what follows.
select is(tap.outcome(tap.with_meta(pg_temp.f('noflid'),
          '{"STYP":"BOTM","SNDR":"","SEQN":"x"}') || '{"error":{"reason":"x"}}'), 'SKIPPED', 'ignoring wins');
select is(pg_temp.bad(tap.with_meta(pg_temp.f('unknown'), '{"SNDR":""}') || '{"error":{"reason":"x"}}'),
          'MX101 message N: x', 'the error of the body before identity');
select is(pg_temp.bad(tap.with_meta(tap.flop('ZZZZ'), '{"SNDR":""}')),
          'MX101 message N, tag META: SNDR, TYPE and STYP (1-200 characters) and SEQN (1-18 digits) are required',
          'identity before the kind');
select tap.given(tap.with_meta(pg_temp.f('ok'), '{"SEQN":"777"}'));
select is(tap.outcome(tap.with_meta(pg_temp.f('shape'), '{"SEQN":"777"}')), 'SKIPPED',
          'a reused identity before the content');
select is(tap.outcome(tap.with_meta(pg_temp.f('ok'), '{"SEQN":"777"}') || '{"error":{"reason":"x"}}'),
          'DEAD/MALFORMED MX101', 'but an error of decoding before it');

-- The kind before the records.
select is(pg_temp.bad(tap.with_meta(pg_temp.f('shape'), '{"STYP":"ZZZZ"}')),
          'MX103 message N: kind FLOP/ZZZZ is unknown or disabled; enable it in flop_kind and have it sent again under a new SEQN',
          'the kind first');
select is(pg_temp.bad(tap.schd('DELT', 'x')), 'MX103 message N: kind SCHD/DELT is not supported', 'so with SCHD');

-- A package: RECS, day, twice, then the records.
select matches(pg_temp.bad(tap.dnld('x', tap.rec('F', '{"XXXX":"1"}'),
          tap.rec('F')) || '{"schedule":{"RECS":"9","FDAY":"x"}}'), '^MX101 .*tag RECS:', 'RECS first');
select matches(pg_temp.bad(tap.dnld('x', tap.rec('F', '{"XXXX":"1"}'), tap.rec('F'))), '^MX101 .*tag FDAY:',
          'then the day');
select matches(pg_temp.bad(tap.dnld(null, tap.rec('F', '{"XXXX":"1"}'), tap.rec('F'))), '^MX101 .*tag SODT:',
          'also from the records');
select matches(pg_temp.bad(tap.dnld('09SEP26', tap.rec('F', '{"XXXX":"1"}'), tap.rec('F'))), '^MX101 .*stands twice',
          'then a flight twice');
select matches(pg_temp.bad(tap.dnld('09SEP26', tap.rec('F', '{"XXXX":"1"}'),
          tap.rec('G', jsonb_build_object('ESTT', repeat('x', 201))))), '^MX103 .*tag XXXX', 'then the unknown field');
select matches(pg_temp.bad(tap.dnld('09SEP26', tap.rec('F'),
          tap.rec('G', jsonb_build_object('ESTT', repeat('x', 201))))), '^MX102 .*flight G, tag ESTT',
          'then the width');

-- Records of a FLOP, whatever their order.
select matches(pg_temp.bad(pg_temp.f('wide', 'nokey', 'unknown', 'shape')),
          '^MX101 .*flight F, tag ESTT: a value is missing or has the wrong shape', 'shape first');
select matches(pg_temp.bad(pg_temp.f('wide', 'nokey', 'unknown', 'noflid')),
          '^MX101 message N, tag FLID: a value is missing', 'a missing FLID is shape');
select matches(pg_temp.bad(pg_temp.f('wide', 'nokey', 'unknown')), '^MX103 .*tag XXXX', 'then unknown fields');
select matches(pg_temp.bad(pg_temp.f('wide', 'nokey')), '^MX101 .*no key of its kind', 'then the key of the kind');
select matches(pg_temp.bad(pg_temp.f('ok', 'wide')), '^MX102 .*tag ESTT: capacity', 'then the width');
select is(pg_temp.bad(tap.flop('ESTT', tap.rec('B', '{"ESTT":"1","ZZZZ":"1"}'),
          tap.rec('A', '{"ESTT":"1","YYYY":"1","XXXX":"1"}'))),
          'MX103 message N, flight B, tag ZZZZ: unknown field (wire.unknown_field = reject); list it in wire_ignored_field and have it sent again under a new SEQN',
              'of one sort the first record');
select matches(pg_temp.bad(tap.flop('ESTT', tap.rec('A', '{"ESTT":"1","YYYY":"1","XXXX":"1"}'))), 'tag XXXX',
          'and the first tag');

-- Shapes.
select is(tap.outcome(c), 'DEAD/MALFORMED MX101', 'shape: ' || d)
  from (values ('a scalar that is an object', tap.flop('ESTT', tap.rec('F', '{"ESTT":{}}'))),
      ('a scalar that is a number', tap.flop('ESTT', tap.rec('F', '{"ESTT":1}'))),
               ('a scalar that is null', tap.flop('ESTT', tap.rec('F', '{"ESTT":null}'))),
                   ('a scalar that is a list', tap.flop('ESTT', tap.rec('F', '{"ESTT":[]}'))),
               ('a text that is JSON', tap.flop('SRVT', tap.rec('F', '{"SRVT":[{}]}'))),
                   ('an object that is a text', tap.flop('FDIV', tap.rec('F', '{"FDIV":"x"}'))),
               ('a collection that is an object', tap.flop('GTDT', tap.rec('F', null, '{"GTDT":{}}'))),
                   ('a collection that is a text', tap.flop('GTDT', tap.rec('F', null, '{"GTDT":"x"}'))),
               ('an item that is a text', tap.flop('GTDT', tap.rec('F', null, '{"GTDT":["x"]}'))),
                   ('an item that is null', tap.flop('GTDT', tap.rec('F', null, '{"GTDT":[null]}'))),
               ('an item that is a list', tap.flop('GTDT', tap.rec('F', null, '{"GTDT":[[]]}'))),
                   ('an empty FLID', tap.flop('ESTT', tap.rec('', '{"ESTT":"1"}'))),
               ('no flights', tap.flop('ESTT') - 'flights'),
                   ('flights that are no list', tap.flop('ESTT') || '{"flights":{}}'),
                   ('a record that is a text', tap.flop('ESTT') || '{"flights":["x"]}')) v (d, c);
select is(tap.flids(), array['F'], 'only the good ones were written');

select * from finish();
rollback;
