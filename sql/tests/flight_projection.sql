-- The whole state as it goes out: every column, no empty text, fixed order (FS-5.5, FS-6.2, contract 5).
begin;
set local search_path = msgx, tap;
select plan(85);

select tap.start();
select is((select count(*) from flight_projection(null)), 0::bigint, 'no flight, no projection');

-- Every tag of the catalogue comes back from its column.
select tap.given(tap.dnld('09SEP26', tap.rec('FULL',
    (select jsonb_object_agg(f.tag, case f.kind when 'object' then (select jsonb_object_agg(a, f.tag || a)
        from unnest(f.attrs) a) else to_jsonb(f.tag || '-v') end) from flight_field f where f.kind <> 'collection'),
    (select jsonb_object_agg(f.tag, jsonb_build_array((select jsonb_object_agg(a, f.tag || a) from unnest(f.attrs) a),
        '{}'::jsonb)) from flight_field f where f.kind = 'collection'))));
select is(tap.flight('FULL') -> f.tag,
          case f.kind when 'object' then (select jsonb_object_agg(a, f.tag || a) from unnest(f.attrs) a)
                      when 'collection' then jsonb_build_array((select jsonb_object_agg(a, f.tag || a)
                          from unnest(f.attrs) a), '{}'::jsonb)
                      else to_jsonb(f.tag || '-v') end, format('%s (%s)', f.tag, f.kind))
  from flight_field f order by f.tag;
select set_eq($$select jsonb_object_keys(tap.flight('FULL'))$$,
          $$select tag::text from flight_field union all values ('FLID'), ('FDAY'), ('STATE_VERSION'),
          ('LAST_MESSAGE_ID'), ('UPDATED_AT')$$, 'these keys and no other');
select is(jsonb_typeof(tap.flight('FULL') -> k), t, format('%s is a %s', k, t))
  from (values ('FLID', 'string'), ('FDAY', 'string'), ('STATE_VERSION', 'number'), ('LAST_MESSAGE_ID', 'number'),
      ('UPDATED_AT', 'string'), ('ESTT', 'string'), ('GTDT', 'array'), ('FDIV', 'object')) v (k, t);
select is(tap.flight('FULL') @> '{"FLID":"FULL","FDAY":"2026-09-09","STATE_VERSION":1,"LAST_MESSAGE_ID":1,"UPDATED_AT":"2026-09-09T00:01:00.000000Z"}',
          true, 'and the keys that are no tags');

-- Times are UTC whatever the session.
set local timezone = 'Asia/Shanghai';
select is(tap.flight('FULL') ->> 'UPDATED_AT', '2026-09-09T00:01:00.000000Z',
          'the zone of the session does not matter');
set local datestyle = 'SQL, DMY';
select is(tap.flight('FULL') ->> 'FDAY', '2026-09-09', 'nor does the date style');

-- A bare flight.
select tap.given(tap.adft(tap.rec('BARE')));
select is(tap.flight('BARE'),
          '{"FLID":"BARE","STATE_VERSION":1,"LAST_MESSAGE_ID":2,"UPDATED_AT":"2026-09-09T00:02:00.000000Z"}'::jsonb,
          'absent is no key, without a day too');

-- Empty text.
update flight_schd set estt = '', srvt_text = '', fdiv_ddes = '', fret_text = '' where flid = 'BARE';
insert into flight_gate values ('BARE', 1, '', '', '', '', '', '', '', 1, now(), now());
select is(tap.flight('BARE') - 'UPDATED_AT', '{"FLID":"BARE","STATE_VERSION":1,"LAST_MESSAGE_ID":2,"GTDT":[{}]}'::jsonb,
          'empty text is left out everywhere; an emptied item stays');

-- Order of items and flights.
insert into flight_delay select 'BARE', g, null, 'c' || g, null, null, null, 1, now(),
    now() from generate_series(12, 1, -1) g;
select is((select array_agg(d ->> 'CODE' order by o)
          from jsonb_array_elements(tap.flight('BARE') -> 'DELY') with ordinality as x (d, o)),
          array['c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8', 'c9', 'c10', 'c11', 'c12'],
          'items by ordinal, as numbers');
select tap.given(tap.adft(tap.rec('b'), tap.rec('B'), tap.rec('a'), tap.rec('É'), tap.rec('10'), tap.rec('9'),
          tap.rec('_')));
select is((select array_agg(p ->> 'FLID') from flight_projection(null) as x (p)),
          array['10', '9', 'B', 'BARE', 'FULL', '_', 'a', 'b', 'É'], 'all flights, in code-point order');
select is((select array_agg(p ->> 'FLID') from flight_projection(array['b', 'a', 'nope', '9', 'a', null]) as x (p)),
          array['9', 'a', 'b'], 'those asked for, once, in that order');
select is((select count(*) from flight_projection('{}')), 0::bigint, 'none asked for');
select is((select count(*) from flight_projection(null)), 9::bigint, 'null is all');

-- Every text column emptied: nothing of it is shown (D11).
do $$
begin
    execute (select 'update flight_schd set ' || string_agg(format('%I = ''''', a.attname), ', ') || ' where flid = ''FULL'''
               from pg_attribute a
              where a.attrelid = 'flight_schd'::regclass and a.attnum > 0 and a.atttypid = 'varchar'::regtype
                and a.attname not in ('flid', 'last_dttm'));
    execute (select string_agg(format('update %s set %s', c.relname, s.list), '; ')
               from pg_class c
              cross join lateral (
                  select string_agg(format('%I = ''''', a.attname), ', ') as list from pg_attribute a
                   where a.attrelid = c.oid and a.attnum > 0 and a.atttypid = 'varchar'::regtype
                     and a.attname not in ('flid', 'route_kind')) s
              where c.relnamespace = 'msgx'::regnamespace and c.relname ~ '^flight_(gate|checkin|belt|stand_plan|chute|delay|bridge_op|chock_op|route_point)$');
end;
$$;
select set_eq($$select k from jsonb_object_keys(tap.flight('FULL')) k where k not in
          (select tag from flight_field where kind = 'collection')$$,
          case when tap.flight('FULL') ? 'FDAY' then array['FLID', 'FDAY', 'STATE_VERSION', 'LAST_MESSAGE_ID', 'UPDATED_AT']
               else array['FLID', 'STATE_VERSION', 'LAST_MESSAGE_ID', 'UPDATED_AT'] end, 'no emptied scalar, text or object is shown');
select is((select count(*) from jsonb_each(tap.flight('FULL')) c, jsonb_array_elements(
          case jsonb_typeof(c.value) when 'array' then c.value end) i where i <> '{}'), 0::bigint, 'an emptied item stays {}');

select * from finish();
rollback;
