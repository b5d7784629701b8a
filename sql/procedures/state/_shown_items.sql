-- ================================================================================================
-- _shown_items
-- Purpose   : Compare the items a message carries with those of the flight.
-- Params    : p_items: items of a change; p_tag: collection
-- Returns   : list
-- Errors    : none
-- Locks     : none
-- Reads     : flight_field
-- Writes    : none
-- Called by : _apply_adft
-- Sources   : D11, D24
-- Oracle    : msgx_state.shown_items
-- ================================================================================================
create or replace function _shown_items(p_items jsonb, p_tag text) returns jsonb
language sql stable
as $$
    select coalesce(jsonb_agg(coalesce((
               select jsonb_object_agg(v.key, v.value) from jsonb_each(i.item) v
                where v.value <> '""' and v.key = any (f.attrs)), '{}') order by i.ord), '[]')
      from flight_field f
      left join lateral jsonb_array_elements(p_items) with ordinality as i (item, ord) on true
     where f.tag = p_tag and i.item is not null
$$;

comment on function _shown_items(jsonb, text) is 'Items of a collection as the projection shows them: known keys, no empty text.';
revoke all on function _shown_items(jsonb, text) from public;
