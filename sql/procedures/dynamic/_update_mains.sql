-- ================================================================================================
-- _update_mains
-- Purpose   : A shared flight that comes or goes shows in the list of its main.
-- Params    : p_message_id, p_meta: the message
--             p_mains, p_add, p_remove: parallel arrays: main FLID, FLNO to add or null, FLNO to remove or null
--             p_now
-- Returns   : NOTICE and STATE of each main whose text changed, mains in code-point order
-- Errors    : none
-- Locks     : none
-- Reads     : flight_schd
-- Writes    : flight_schd and details
-- Called by : _apply_adft, _apply_fdel
-- Sources   : D23, US-05/4
-- Oracle    : msgx_dynamic.update_mains
-- ================================================================================================
create or replace function _update_mains(
    p_message_id bigint, p_meta jsonb, p_mains text[], p_add text[], p_remove text[], p_now timestamptz
) returns outbox_entry[]
language plpgsql volatile
as $$
declare
    v_changes flight_change[];
begin
    with edit as (
        select x.main,
               coalesce(array_agg(x.add order by x.ord) filter (where x.add <> ''), '{}') as adds,
               coalesce(array_agg(x.remove order by x.ord) filter (where x.remove <> ''), '{}') as removes
          from unnest(p_mains, p_add, p_remove) with ordinality as x (main, add, remove, ord)
         group by x.main
    )
    select array_agg(row(0, f.flid, false, f.state_version + 1, null, jsonb_build_object('MAFL', n.text), '{}'::jsonb, array['MAFL'])::flight_change
                     order by f.flid collate "C")
      into v_changes
      from edit e
      join flight_schd f on f.flid = e.main
     cross join lateral (select _edit_mafl(f.mafl_text, e.adds, e.removes) as text) n
     where n.text is distinct from f.mafl_text;
    if v_changes is null then
        return '{}'::outbox_entry[];
    end if;
    perform _write_flights(p_message_id, v_changes, _full_dttm(p_meta ->> 'DTTM'), p_now);
    return (select array_agg(e.entry order by c.at, e.ord)
              from unnest(v_changes) with ordinality as c (ord, flid, is_new, state_version, fday, vals, sets, carried, at)
             cross join lateral (values
                 (1, row('KAFKA:msg', 'NOTICE', c.flid, c.state_version, _build_notice(p_message_id, p_meta, c.flid, c.carried))::outbox_entry),
                 (2, row('KAFKA:schd', 'STATE', c.flid, c.state_version, null)::outbox_entry)) as e (ord, entry));
end;
$$;

comment on function _update_mains(bigint, jsonb, text[], text[], text[], timestamptz) is 'Updates the shared-flight lists of main flights; the events of those that changed (D23).';
revoke all on function _update_mains(bigint, jsonb, text[], text[], text[], timestamptz) from public;
