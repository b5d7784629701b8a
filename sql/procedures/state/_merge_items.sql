-- ================================================================================================
-- _merge_items
-- Purpose   : The reserved command Apply.
-- Params    : p_current: items as projected; p_items: items of the command; p_match: key of the entry (source sequence, CODE for DELY)
-- Returns   : merged list
-- Errors    : none
-- Locks     : none
-- Reads     : none
-- Writes    : none
-- Called by : _stage_changes
-- Sources   : FS-5.2-5, D12
-- Oracle    : msgx_state.merge_items
-- ================================================================================================
create or replace function _merge_items(p_current jsonb, p_items jsonb, p_match text) returns jsonb
language plpgsql immutable
as $$
declare
    v_list jsonb := coalesce(p_current, '[]');
    v_item jsonb;
    v_at   integer;
begin
    for v_item in select i.item from jsonb_array_elements(p_items) with ordinality as i (item, ord) order by i.ord loop
        select min(l.ord)::integer - 1 into v_at
          from jsonb_array_elements(v_list) with ordinality as l (item, ord)
         where l.item ->> p_match = v_item ->> p_match;
        if v_at is null then
            v_list := v_list || jsonb_build_array(v_item);
        else
            v_list := jsonb_set(v_list, array[v_at::text], (v_list -> v_at) || v_item);
        end if;
    end loop;
    return v_list;
end;
$$;

comment on function _merge_items(jsonb, jsonb, text) is 'Applies items to a collection: overlay on the first entry with the same key, else append (FS-5.2-5).';
revoke all on function _merge_items(jsonb, jsonb, text) from public;
