-- ================================================================================================
-- _shown_value
-- Purpose   : Compare what a message carries with what the flight shows.
-- Params    : p_value: value of a change
-- Returns   : shown value, null when nothing is shown
-- Errors    : none
-- Locks     : none
-- Reads     : none
-- Writes    : none
-- Called by : _apply_adft
-- Sources   : D11, D24, D28
-- Oracle    : msgx_state.shown_value
-- ================================================================================================
create or replace function _shown_value(p_value jsonb) returns jsonb
language plpgsql immutable
as $$
begin
    if jsonb_typeof(p_value) = 'object' then
        return nullif(coalesce((select jsonb_object_agg(v.key, v.value) from jsonb_each(p_value) v where v.value <> '""'), '{}'), '{}');
    elsif p_value in ('""', 'null', '[]') then
        return null;
    elsif jsonb_typeof(p_value) = 'string' and p_value #>> '{}' like '[{%' then
        return (p_value #>> '{}')::jsonb;
    end if;
    return p_value;
end;
$$;

comment on function _shown_value(jsonb) is 'A stored value as the projection shows it: null for empty, JSON text as JSON.';
revoke all on function _shown_value(jsonb) from public;
