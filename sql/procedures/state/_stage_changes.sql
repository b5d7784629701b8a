-- ================================================================================================
-- _stage_changes
-- Purpose   : One form for the five commands: a tag that is absent is unchanged, null clears a value, a list replaces a set.
-- Params    : p_flights: records of the command, each FLID once, in package order
--             p_fday: day to take the flights into, null = keep
--             p_clear_absent: fields that are not carried are cleared (D2)
--             p_apply: replaced lists are applied item by item (D12)
-- Returns   : changes in package order
-- Errors    : none
-- Locks     : none
-- Reads     : flight_schd, flight_tombstone, flight_field, setting, detail tables (Apply only)
-- Writes    : none
-- Called by : _apply_snapshot, _apply_adft, _apply_flop
-- Sources   : FS-5.2, FS-5.3, D2, D11, D12, D18
-- Oracle    : msgx_state.stage_changes
-- ================================================================================================
create or replace function _stage_changes(p_flights jsonb, p_fday date, p_clear_absent boolean, p_apply boolean) returns flight_change[]
language plpgsql stable
as $$
declare
    v_vals        jsonb := '{}'::jsonb;
    v_sets        jsonb := '{}'::jsonb;
    v_empty_clear boolean := false;
    v_changes     flight_change[];
begin
    if p_clear_absent then
        select jsonb_object_agg(f.tag, null) filter (where f.kind <> 'collection'),
               jsonb_object_agg(f.tag, '[]'::jsonb) filter (where f.kind = 'collection')
          into v_vals, v_sets from flight_field f;
    end if;
    if jsonb_path_exists(p_flights, '$[*].set.* ? (@ == "")') then
        v_empty_clear := _get_setting('wire.empty_scalar') = 'clear';
    end if;
    select array_agg(row(
               e.ord, e.j ->> 'FLID', f.flid is null,
               coalesce(f.state_version, t.state_version, 0) + 1,
               p_fday,
               v_vals
                   || case when v_empty_clear
                           then coalesce((select jsonb_object_agg(s.key, case when s.value = '""' and ff.kind = 'scalar' then 'null' else s.value end)
                                            from jsonb_each(e.j -> 'set') s join flight_field ff on ff.tag = s.key), '{}')
                           else coalesce(e.j -> 'set', '{}') end
                   || case when e.j ? 'clear'
                           then coalesce((select jsonb_object_agg(ff.tag, null) from flight_field ff
                                           where ff.kind <> 'collection' and e.j -> 'clear' ? ff.tag), '{}')
                           else '{}' end,
               v_sets
                   || coalesce(e.j -> 'replace', '{}')
                   || case when e.j ? 'clear'
                           then coalesce((select jsonb_object_agg(ff.tag, '[]'::jsonb) from flight_field ff
                                           where ff.kind = 'collection' and e.j -> 'clear' ? ff.tag), '{}')
                           else '{}' end,
               case when p_fday is null then coalesce(_carried_keys(e.j), '{}') end
           )::flight_change order by e.ord)
      into v_changes
      from jsonb_array_elements(p_flights) with ordinality as e (j, ord)
      -- offset 0 keeps this a lookup per record: the planner cannot know how few there are.
      left join lateral (select x.flid, x.state_version from flight_schd x where x.flid = e.j ->> 'FLID' offset 0) f on true
      left join lateral (select x.state_version from flight_tombstone x
                          where x.flid = e.j ->> 'FLID' and f.flid is null offset 0) t on true;
    if p_apply or jsonb_path_exists(p_flights, '$[*].apply') then
        select array_agg(row(c.ord, c.flid, c.is_new, c.state_version, c.fday, c.vals,
                   c.sets || coalesce((
                       select jsonb_object_agg(a.key, _merge_items(p.doc -> a.key, a.value, ff.match_tag))
                         from (select * from jsonb_each(e.j -> 'apply')
                               union all
                               select r.key, r.value from jsonb_each(e.j -> 'replace') r where p_apply and r.value <> '[]') a
                         join flight_field ff on ff.tag = a.key), '{}'), c.carried
               )::flight_change order by c.ord)
          into v_changes
          from unnest(v_changes) c
          join jsonb_array_elements(p_flights) with ordinality as e (j, ord) on e.ord = c.ord
          left join lateral flight_projection(array[c.flid]) as p (doc) on true;
    end if;
    return coalesce(v_changes, '{}');
end;
$$;

comment on function _stage_changes(jsonb, date, boolean, boolean) is 'Resolves the commands of records into changes with their next version (FS-5.2, FS-5.3).';
revoke all on function _stage_changes(jsonb, date, boolean, boolean) from public;
