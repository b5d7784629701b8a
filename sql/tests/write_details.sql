-- Every write rewrites the nine detail sets of its flight, and only of its flight (FS-5.4-5, D22).
begin;
set local search_path = msgx, tap;
select plan(34);

select tap.start();
create view pg_temp.details as
    select 'GTDT' as tag, flid, ordinal, record_version, created_at, updated_at from flight_gate
    union all select 'CKDT', flid, ordinal, record_version, created_at, updated_at from flight_checkin
    union all select 'CLDT', flid, ordinal, record_version, created_at, updated_at from flight_belt
    union all select 'PSDT', flid, ordinal, record_version, created_at, updated_at from flight_stand_plan
    union all select 'CHDT', flid, ordinal, record_version, created_at, updated_at from flight_chute
    union all select 'DELY', flid, ordinal, record_version, created_at, updated_at from flight_delay
    union all select 'ABTM', flid, ordinal, record_version, created_at, updated_at from flight_bridge_op
    union all select 'CHOT', flid, ordinal, record_version, created_at, updated_at from flight_chock_op
    union all select route_kind, flid, ordinal, record_version, created_at, updated_at from flight_route_point;
create function pg_temp.full(p_flid text) returns jsonb language sql stable as $$
    select tap.rec(p_flid, '{"ESTT":"1"}', (select jsonb_object_agg(f.tag, jsonb_build_array(
               (select jsonb_object_agg(a, lower(f.tag || a) || '1') from unnest(f.attrs) a),
                   (select jsonb_object_agg(a, lower(f.tag || a) || '2') from unnest(f.attrs) a)))
             from msgx.flight_field f where f.kind = 'collection'))
$$;

select tap.given(tap.dnld('09SEP26', pg_temp.full('F'), pg_temp.full('G')));
select is((select count(*) from pg_temp.details), 40::bigint, 'two flights, ten collections, two items each');
select is((select count(*) from pg_temp.details
          where record_version = 1 and created_at = tap.now_of(1) and updated_at = tap.now_of(1)), 40::bigint,
          'all of the first version');
select is(tap.flight('F') -> f.tag, (pg_temp.full('F') -> 'replace') -> f.tag,
          format('%s: every key of both items comes back', f.tag)) from flight_field f where f.kind = 'collection'
          order by f.tag;

-- A message that carries no collection.
select tap.given(tap.flop('ESTT', tap.rec('F', '{"ESTT":"2"}')));
select is((select count(*) from pg_temp.details
          where flid = 'F' and record_version = 2 and created_at = tap.now_of(2) and updated_at = tap.now_of(2)),
          20::bigint, 'all sets of the flight carry the new version');
select is((select count(*) from pg_temp.details where flid = 'G' and record_version = 1 and updated_at = tap.now_of(1)),
          20::bigint, 'another flight is not touched');
select is(tap.flight('F') - 'ESTT' - 'STATE_VERSION' - 'UPDATED_AT' - 'LAST_MESSAGE_ID' - 'FLID',
          tap.flight('G') - 'ESTT' - 'STATE_VERSION' - 'UPDATED_AT' - 'LAST_MESSAGE_ID' - 'FLID',
          'their content stays');

-- Each collection alone: it is replaced, the nine others are kept and rewritten.
create function pg_temp.one(p_tag text) returns text
language plpgsql
as $$
declare
    v_before jsonb := tap.flight('F') - p_tag - 'STATE_VERSION' - 'UPDATED_AT' - 'LAST_MESSAGE_ID';
    v_attr   text;
begin
    select f.attrs[cardinality(f.attrs)] into v_attr from msgx.flight_field f where f.tag = p_tag;
    perform tap.given(tap.flop(p_tag, tap.rec('F', null, jsonb_build_object(p_tag,
        jsonb_build_array(jsonb_build_object(v_attr, 'n1'), jsonb_build_object(v_attr, 'n2'),
        jsonb_build_object(v_attr, 'n3'))))));
    if tap.flight('F') - p_tag - 'STATE_VERSION' - 'UPDATED_AT' - 'LAST_MESSAGE_ID' <> v_before then
        return 'others changed';
    end if;
    if (select count(*) from pg_temp.details d where d.flid = 'F' and d.record_version <> tap.version('F')) > 0 then
        return 'version left behind';
    end if;
    return (select array_agg(d.ordinal order by d.ordinal) from pg_temp.details d
        where d.flid = 'F' and d.tag = p_tag)::text || (tap.flight('F') -> p_tag)::text;
end;
$$;
select is(pg_temp.one(f.tag), format('{1,2,3}[{"%1$s": "n1"}, {"%1$s": "n2"}, {"%1$s": "n3"}]',
          f.attrs[cardinality(f.attrs)]), f.tag || ' alone')
  from flight_field f where f.kind = 'collection' order by f.tag;

-- ROUT and ERUT share a table and do not meet (D22).
select tap.given(tap.flop('ROUT', tap.rec('R', null,
          '{"ROUT":[{"RTNO":"1","APCD":"A"},{"RTNO":"2","APCD":"B"}],"ERUT":[{"RTNO":"1","APCD":"X"}]}')));
select results_eq($$select route_kind::text, ordinal, source_seq::text,
          apcd::text from flight_route_point where flid = 'R' order by route_kind, ordinal$$,
                  $$values ('ERUT', 1, '1', 'X'), ('ROUT', 1, '1', 'A'), ('ROUT', 2, '2', 'B')$$,
                      'both start from 1 side by side');
select tap.given(tap.flop('ERUT', tap.rec('R', null, null, '["ERUT"]')));
select is(tap.flight('R') -> 'ROUT', '[{"RTNO":"1","APCD":"A"},{"RTNO":"2","APCD":"B"}]'::jsonb,
          'clearing one leaves the other');
select is(tap.flight('R') ? 'ERUT', false, 'and clears the one');
select tap.given(tap.flop('ERUT', tap.rec('R', null, '{"ERUT":[{"APCD":"Y"}]}')));
select is((select array_agg(route_kind || record_version order by route_kind, ordinal) from flight_route_point
          where flid = 'R'), array['ERUT3', 'ROUT3', 'ROUT3'], 'both carry the version');

-- What the main row keeps about messages.
select results_eq($$select state_version, last_message_id, high_message_id from flight_schd where flid = 'R'$$,
          $$select 3::bigint, tap.last_id(), tap.last_id()$$, 'version and message');
select lives_ok($$select _write_flights(1, array[jsonb_populate_record(null::flight_change,
          '{"ord":1,"flid":"R","is_new":false,"state_version":4,"vals":{"ESTT":"9"},"sets":{}}')], null,
          now())$$, 'an older message writes (released by hand)');
select results_eq($$select state_version, last_message_id, high_message_id from flight_schd where flid = 'R'$$,
          $$select 4::bigint, 1::bigint, tap.last_id()$$, 'high_message_id never goes back');
select lives_ok($$select _write_flights(1, '{}', null, now())$$, 'no change is no work');
select is((select f.fday from flight_schd f where f.flid = 'F'), date '2026-09-09', 'no day given keeps the day');

select * from finish();
rollback;
