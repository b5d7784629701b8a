-- Every enabled kind with its own keys; disabled and unknown ones; one key of the kind is required (US-05/1, D37).
begin;
set local search_path = msgx, tap;
select plan(138);

select tap.start();

-- A record for each kind, from the catalogue of fields.
create function pg_temp.carry(p_flid text, p_tag text, p_value text) returns jsonb
language sql stable
as $$
    select case f.kind
               when 'collection' then tap.rec(p_flid, null,
                   jsonb_build_object(p_tag, jsonb_build_array(jsonb_build_object(f.attrs[cardinality(f.attrs)],
                   p_value))))
               when 'object' then tap.rec(p_flid, jsonb_build_object(p_tag, jsonb_build_object(f.attrs[1], p_value)))
               else tap.rec(p_flid, jsonb_build_object(p_tag, p_value)) end
      from msgx.flight_field f where f.tag = p_tag
$$;
create function pg_temp.shown(p_tag text, p_value text) returns jsonb
language sql stable
as $$
    select case f.kind
               when 'collection' then jsonb_build_array(jsonb_build_object(f.attrs[cardinality(f.attrs)], p_value))
               when 'object' then jsonb_build_object(f.attrs[1], p_value)
               else to_jsonb(p_value) end
      from msgx.flight_field f where f.tag = p_tag
$$;

select tap.given(tap.plan_of('09SEP26', 'F'));
create temp table kind (styp text, tag text, seq integer);
insert into kind select k.styp, t.tag, row_number() over (order by k.styp collate "C", t.tag collate "C")
    from flop_kind k cross join unnest(k.keys) t (tag) where k.enabled;
select is((select count(distinct styp) from kind), 28::bigint, '28 kinds with keys (FDEL has none)');
select is(tap.send(tap.flop(k.styp, pg_temp.carry('F', k.tag, 'v' || k.seq))) - 'message_id',
          '{"status": "SUCCEEDED", "result": {"records": 1, "written": 1, "events": 2}}'::jsonb,
          format('%s with %s', k.styp, k.tag))
  from kind k order by k.seq;
select is(tap.flight('F') -> k.tag, pg_temp.shown(k.tag, 'v' || k.seq), format('%s is there', k.tag))
  from kind k where not exists (select 1 from kind l where l.tag = k.tag and l.seq > k.seq) order by k.seq;
select is((select array_agg(e.kind || ' ' || coalesce(e.payload ->> 'STYP',
          '') || ' ' || coalesce(e.payload ->> 'CHANGED', '') order by e.event_id) from msg_event e
          where e.message_id = k.seq + 1),
          array[format('NOTICE %s ["%s"]', k.styp, k.tag), 'STATE  '], format('%s tells downstream', k.styp))
  from kind k order by k.seq;
select is(tap.version('F'), (select count(*) + 1 from kind), 'every one took a version');
select is((select fday from flight_schd where flid = 'F'), date '2026-09-09', 'none moved the day');

-- Enabled with a group of keys: one is enough.
select is(tap.outcome(tap.flop('HNAG', tap.rec('F', '{"PHAG":"1"}'))), 'SUCCEEDED', 'one key of a group');
select is(tap.outcome(tap.flop('HNAG', tap.rec('F', null, null, '["MHAG"]'))), 'SUCCEEDED',
          'a key that is cleared counts');
select is(tap.outcome(tap.flop('TAOP', tap.rec('F', '{"TAOP":"A","TAFL":"B","TAID":"C"}'))), 'SUCCEEDED',
          'all keys of a group');
select is(tap.flight('F') - 'UPDATED_AT' @> '{"TAOP":"A","TAFL":"B","TAID":"C"}', true, 'all are written');
select is((select payload -> 'CHANGED' from msg_event where message_id = tap.last_id() and kind = 'NOTICE'),
          '["TAFL", "TAID", "TAOP"]'::jsonb, 'CHANGED is sorted');

-- No key of the kind.
select is(tap.outcome(tap.flop('GTDT', tap.rec('F', '{"ESTT":"1"}'))), 'DEAD/MALFORMED MX101',
          'no key of its kind is malformed');
select is(tap.reason(), format('message %s, flight F: the record carries no key of its kind (GTDT)', tap.last_id()),
          'the reason names flight and keys');
select is(tap.outcome(tap.flop('HNAG', tap.rec('F'))), 'DEAD/MALFORMED MX101', 'an empty record');
select is(tap.outcome(tap.flop('ESTT', tap.rec('F', '{"ESTT":"1"}'), tap.rec('G', '{"ACTT":"1"}'))),
          'DEAD/MALFORMED MX101', 'every record needs one');
select is(tap.flids(), array['F'], 'nothing of that message is applied');
select is(tap.outcome(tap.flop('ESTT')), 'DEAD/MALFORMED MX101', 'a message without a record');
select is(tap.reason(), format('message %s, tag FLOP: the message has no record', tap.last_id()), 'the reason says so');
select is(tap.outcome(tap.fdel()), 'DEAD/MALFORMED MX101', 'a deletion without a record');

-- Other known fields are applied too.
select is(tap.outcome(tap.flop('ESTT', tap.rec('F', '{"ESTT":"e","REMC":"r"}', '{"DELY":[{"CODE":"d"}]}'))),
          'SUCCEEDED', 'other known fields beside the key');
select is(tap.flight('F') @> '{"ESTT":"e","REMC":"r","DELY":[{"CODE":"d"}]}', true, 'are applied');
select is((select payload -> 'CHANGED' from msg_event where message_id = tap.last_id() and kind = 'NOTICE'),
          '["DELY", "ESTT", "REMC"]'::jsonb, 'and told');

-- Disabled and unknown.
select is(tap.outcome(tap.flop(k.styp, tap.rec('F', jsonb_build_object(k.keys[1], '1')))), 'DEAD/EXHAUSTED MX103',
          k.styp || ' is disabled') from flop_kind k where not k.enabled order by k.styp;
select is(tap.reason(),
          format('message %s: kind FLOP/VIPP is unknown or disabled; enable it in flop_kind and have it sent again under a new SEQN',
          tap.last_id()), 'the reason names the kind');
select is(tap.outcome(tap.flop('ZZZZ', tap.rec('F', '{"ESTT":"1"}'))), 'DEAD/EXHAUSTED MX103', 'an unknown kind');
update flop_kind set enabled = true where styp = 'MAXP';
select is(tap.outcome(tap.flop('MAXP', tap.rec('F', '{"MAXP":"180"}'))), 'SUCCEEDED', 'a kind that the site enables');
update flop_kind set enabled = false where styp = 'FDEL';
select is(tap.outcome(tap.fdel('F')), 'DEAD/EXHAUSTED MX103', 'even FDEL can be disabled');
select is(tap.outcome(tap.with_meta(tap.fdel('F'), '{"TYPE":"FDEL"}')), 'DEAD/EXHAUSTED MX103', 'in both forms');

-- Without notice.
update flop_kind set notify = false where styp = 'ESTT';
select is(tap.outcome(tap.flop('ESTT', tap.rec('F', '{"ESTT":"n"}'))), 'SUCCEEDED', 'a kind that does not notify');
select is((select array_agg(kind::text) from msg_event where message_id = tap.last_id()), array['STATE'],
          'tells the state only');

select * from finish();
rollback;
