-- ================================================================================================
-- _check_flights
-- Purpose   : Refuse what would be dropped, cut or misunderstood, before anything is written.
-- Params    : p_message_id: for the reason
--             p_command: the command
--             p_keys: tags of which each record must carry one; empty = none required
-- Returns   : names and counts of fields that were left out by rule, or null
-- Errors    : MX101 shape, key; MX102 capacity; MX103 unknown field; 22P02, 22P05, 22003 a text that looks like JSON and is not
-- Locks     : none
-- Reads     : flight_field, wire_ignored_field, setting
-- Writes    : none
-- Called by : _apply_snapshot, _apply_adft, _apply_flop, _apply_fdel
-- Sources   : D10, D37, D40, FS-5.2-11, FS-5.2-12
-- Oracle    : msgx_state.check_flights
-- ================================================================================================
create or replace function _check_flights(p_message_id bigint, p_command jsonb, p_keys text[]) returns jsonb
language plpgsql stable
as $$
declare
    v_flights jsonb := p_command -> 'flights';
    v_bad     record;
    v_names   text[];
    v_hits    bigint[];
begin
    if jsonb_typeof(v_flights) is distinct from 'array' then
        perform _refuse('MX101', p_message_id, null, null, 'the command has no array of flights');
    end if;
    if jsonb_array_length(v_flights) > _get_setting('snapshot.max_flights')::integer then
        perform _refuse('MX102', p_message_id, null, null,
            format('capacity: %s records, more than snapshot.max_flights', jsonb_array_length(v_flights)));
    end if;
    for v_bad in
        with rec as materialized (
            select e.ord,
                   case jsonb_typeof(e.j -> 'FLID') when 'string' then nullif(btrim(e.j ->> 'FLID'), '') end as flid,
                   case jsonb_typeof(e.j -> 'set') when 'object' then e.j -> 'set' end as sets,
                   case jsonb_typeof(e.j -> 'clear') when 'array' then e.j -> 'clear' end as clears,
                   case jsonb_typeof(e.j -> 'replace') when 'object' then e.j -> 'replace' end as replaces,
                   case jsonb_typeof(e.j -> 'apply') when 'object' then e.j -> 'apply' end as applies,
                   case jsonb_typeof(e.j -> 'unknown') when 'array' then e.j -> 'unknown' end as unknowns,
                   e.j
              from jsonb_array_elements(v_flights) with ordinality as e (j, ord)
        ), found as (
            select r.ord, r.flid, 'FLID' as tag,
                   case when r.flid is null then 'shape' when char_length(r.flid) > 20 then 'width' end as what
              from rec r
            union all
            -- A part of the wrong type would be left out in silence.
            select r.ord, r.flid, p.part, 'shape'
              from rec r
             cross join lateral (values ('set', r.sets), ('clear', r.clears), ('replace', r.replaces), ('apply', r.applies), ('unknown', r.unknowns)) as p (part, kept)
             where r.j ? p.part and p.kept is null
            union all
            select r.ord, r.flid, u.tag, 'unknown'
              from rec r cross join lateral jsonb_array_elements_text(r.unknowns) as u (tag)
            union all
            select 0, null, u.tag, 'unknown'
              from jsonb_array_elements_text(case jsonb_typeof(p_command -> 'unknown') when 'array' then p_command -> 'unknown' end) as u (tag)
            union all
            select r.ord, r.flid,
                   s.key || case when f.kind = 'object' and jsonb_typeof(s.value) = 'object' and s.value - f.attrs <> '{}'
                                 then '/' || (select min(k) from jsonb_object_keys(s.value - f.attrs) k) else '' end,
                   case when f.tag is null or f.kind = 'collection' then 'unknown'
                        when jsonb_typeof(s.value) <> case f.kind when 'object' then 'object' else 'string' end then 'shape'
                        when f.kind = 'object' and s.value - f.attrs <> '{}' then 'unknown'
                        when f.kind = 'object' and s.value @? '$.* ? (@.type() != "string")' then 'shape'
                        when f.kind = 'object' and exists (
                                 select 1 from jsonb_each_text(s.value) v
                                  where char_length(v.value) > case v.key when 'TEXT' then 1000 else f.width end) then 'width'
                        when f.kind <> 'object' and char_length(s.value #>> '{}') > f.width then 'width'
                        -- The cast refuses what the projection could not read back (22P02).
                        when f.kind = 'text' and s.value #>> '{}' like '[{%' and (s.value #>> '{}')::jsonb is null then 'shape'
                   end
              from rec r cross join lateral jsonb_each(r.sets) s
              left join flight_field f on f.tag = s.key
            union all
            select r.ord, r.flid, c.tag, 'unknown'
              from rec r cross join lateral jsonb_array_elements_text(r.clears) as c (tag)
             where not exists (select 1 from flight_field f where f.tag = c.tag)
            union all
            select r.ord, r.flid, s.key,
                   case when f.tag is null or f.kind <> 'collection' then 'unknown'
                        when jsonb_typeof(s.value) <> 'array' then 'shape'
                        when f.max_items < jsonb_array_length(s.value) then 'width' end
              from rec r
              cross join lateral (select * from jsonb_each(r.replaces) union all select * from jsonb_each(r.applies)) s
              left join flight_field f on f.tag = s.key
            union all
            select r.ord, r.flid,
                   s.key || case when jsonb_typeof(i.item) = 'object' and i.item - f.attrs <> '{}'
                                 then '/' || (select min(k) from jsonb_object_keys(i.item - f.attrs) k) else '' end,
                   case when jsonb_typeof(i.item) <> 'object' then 'shape'
                        when i.item - f.attrs <> '{}' then 'unknown'
                        when i.item @? '$.* ? (@.type() != "string")' then 'shape'
                        -- An item of at most 200 bytes cannot hold a longer value.
                        when pg_column_size(i.item) > 200 and exists (
                                 select 1 from jsonb_each_text(i.item) v
                                  where char_length(v.value) > case v.key when 'TEXT' then 1000 else f.width end) then 'width'
                   end
              from rec r
              cross join lateral (select * from jsonb_each(r.replaces) union all select * from jsonb_each(r.applies)) s
              join flight_field f on f.tag = s.key and f.kind = 'collection'
              cross join lateral jsonb_array_elements(case jsonb_typeof(s.value) when 'array' then s.value end) as i (item)
            union all
            select r.ord, r.flid, null, 'key'
              from rec r
             where cardinality(p_keys) > 0
               and not coalesce(r.sets ?| p_keys, false)
               and not coalesce(r.replaces ?| p_keys, false)
               and not coalesce(r.applies ?| p_keys, false)
               and not coalesce(r.clears ?| p_keys, false)
        )
        select f.ord, f.flid, f.tag, f.what, count(*) over (partition by f.tag, f.what) as hits,
               f.what = 'unknown' and exists (select 1 from wire_ignored_field w where w.tag = f.tag) as listed
          from found f
         where f.what is not null
         order by case f.what when 'shape' then 1 when 'unknown' then 2 when 'key' then 3 else 4 end, f.ord, f.tag collate "C"
    loop
        if v_bad.what = 'shape' then
            perform _refuse('MX101', p_message_id, v_bad.flid, v_bad.tag, 'a value is missing or has the wrong shape');
        elsif v_bad.what = 'unknown' and not v_bad.listed and _get_setting('wire.unknown_field') = 'reject' then
            perform _refuse('MX103', p_message_id, v_bad.flid, v_bad.tag,
                'unknown field (wire.unknown_field = reject); list it in wire_ignored_field and have it sent again under a new SEQN');
        elsif v_bad.what = 'unknown' then
            -- The first hundred names tell the story; a hostile message could carry any number.
            if cardinality(v_names) is distinct from 100 and left(v_bad.tag, 60) <> all (coalesce(v_names, '{}')) then
                v_names := v_names || left(v_bad.tag, 60);
                v_hits := v_hits || v_bad.hits;
            end if;
        elsif v_bad.what = 'key' then
            perform _refuse('MX101', p_message_id, v_bad.flid, null,
                format('the record carries no key of its kind (%s)', array_to_string(p_keys, ', ')));
        else
            perform _refuse('MX102', p_message_id, v_bad.flid, v_bad.tag, 'capacity: a value or list is longer than its column allows');
        end if;
    end loop;
    return (select jsonb_object_agg(n.name, n.hits) from unnest(v_names, v_hits) as n (name, hits));
end;
$$;

comment on function _check_flights(bigint, jsonb, text[]) is 'Validates the records of a command: shape, unknown fields, key of the kind, width (D10, D37, D40).';
revoke all on function _check_flights(bigint, jsonb, text[]) from public;
