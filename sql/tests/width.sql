-- Widths and limits: nothing is cut (contract 3, FS-5.2-11).
begin;
set local search_path = msgx, tap;
select plan(138);

select tap.start();
create function pg_temp.n(p_length integer,
    p_char text default 'x') returns text language sql immutable as $$ select repeat(p_char, p_length) $$;

-- Every scalar and text: its width passes, one more is capacity.
select is(tap.outcome(tap.adft(tap.rec('F', (select jsonb_object_agg(f.tag, pg_temp.n(f.width, '航')) from flight_field f
          where f.kind in ('scalar', 'text'))))), 'SUCCEEDED', 'every scalar and text at its full width in characters');
select is((select count(*) from flight_field f where f.kind in ('scalar',
          'text') and char_length(tap.flight('F') ->> f.tag) = f.width),
          (select count(*) from flight_field where kind in ('scalar', 'text')), 'all are there uncut');
select is(tap.outcome(tap.adft(tap.rec('F', jsonb_build_object(f.tag, pg_temp.n(f.width + 1))))),
          'DEAD/MALFORMED MX102', format('%s of %s', f.tag, f.width + 1))
  from flight_field f where f.kind in ('scalar', 'text') order by f.tag;
select is(tap.reason(),
          format('message %s, flight F, tag VIPR: capacity: a value or list is longer than its column allows',
          tap.last_id()), 'the reason names flight and tag');

-- Objects.
select is(tap.outcome(tap.adft(tap.rec('F', (select jsonb_object_agg(f.tag,
          (select jsonb_object_agg(a, pg_temp.n(case a when 'TEXT' then 1000 else f.width end)) from unnest(f.attrs) a))
          from flight_field f where f.kind = 'object')))), 'SUCCEEDED', 'objects at full width');
select is(tap.outcome(tap.adft(tap.rec('F', jsonb_build_object(f.tag, jsonb_build_object(a,
          pg_temp.n(case a when 'TEXT' then 1001 else f.width + 1 end)))))), 'DEAD/MALFORMED MX102',
          format('%s/%s one more', f.tag, a))
  from flight_field f cross join unnest(f.attrs) a where f.kind = 'object' order by f.tag, a;

-- Items.
select is(tap.outcome(tap.adft(tap.rec('F', null, (select jsonb_object_agg(f.tag,
          jsonb_build_array((select jsonb_object_agg(a, pg_temp.n(case a when 'TEXT' then 1000 else f.width end))
          from unnest(f.attrs) a))) from flight_field f where f.kind = 'collection')))), 'SUCCEEDED',
          'items at full width');
select is(tap.outcome(tap.adft(tap.rec('F', null, jsonb_build_object(f.tag, jsonb_build_array('{}'::jsonb,
          jsonb_build_object(a, pg_temp.n(case a when 'TEXT' then 1001 else f.width + 1 end))))))),
          'DEAD/MALFORMED MX102', format('%s/%s one more', f.tag, a))
  from flight_field f cross join unnest(f.attrs) a where f.kind = 'collection' order by f.tag, a;
select is(tap.outcome(tap.adft(tap.rec('F', null, jsonb_build_object('GTDT',
          jsonb_build_array(jsonb_build_object('GATE', pg_temp.n(200, '航'))))))), 'SUCCEEDED',
          '200 characters of three bytes fit an item');
select is(tap.outcome(tap.flop('GTDT', tap.rec('F', null, null, null, jsonb_build_object('GTDT',
          jsonb_build_array(jsonb_build_object('GATE', pg_temp.n(201))))))), 'DEAD/MALFORMED MX102',
          'apply is checked as well');

-- Numbers of items.
select is((select array_agg(tag || max_items order by tag) from flight_field where max_items is not null),
          array['CKDT99', 'CLDT99', 'GTDT99', 'PSDT9'], 'limits of the protocol');
select is(tap.outcome(tap.adft(tap.rec('F', null, jsonb_build_object(f.tag,
          (select jsonb_agg('{}'::jsonb) from generate_series(1, f.max_items)))))), 'SUCCEEDED',
          format('%s items of %s', f.max_items, f.tag))
  from flight_field f where f.max_items is not null order by f.tag;
select is(tap.outcome(tap.adft(tap.rec('F', null, jsonb_build_object(f.tag,
          (select jsonb_agg('{}'::jsonb) from generate_series(1, f.max_items + 1)))))), 'DEAD/MALFORMED MX102',
          format('one more of %s', f.tag))
  from flight_field f where f.max_items is not null order by f.tag;
select is(tap.outcome(tap.adft(tap.rec('F', null, jsonb_build_object('ABTM',
          (select jsonb_agg('{}'::jsonb) from generate_series(1, 1000)))))), 'SUCCEEDED',
          'where there is no limit 1000 items pass');
select is((select max(ordinal) from flight_bridge_op), 1000, 'all of them are kept');

-- FLID.
select is(tap.outcome(tap.flop('ESTT', tap.rec(pg_temp.n(20), '{"ESTT":"1"}'))), 'SUCCEEDED', 'a FLID of 20');
select is(tap.outcome(tap.flop('ESTT', tap.rec(pg_temp.n(21), '{"ESTT":"1"}'))), 'DEAD/MALFORMED MX102',
          'a FLID of 21');
select matches(tap.reason(), 'flight x{20}, tag FLID: capacity', 'which the reason names only in part');

select * from finish();
rollback;
