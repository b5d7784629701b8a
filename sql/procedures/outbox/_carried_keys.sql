-- ================================================================================================
-- _carried_keys
-- Purpose   : Say what a record touched, whatever its values.
-- Params    : p_flight: record of the command
-- Returns   : tags, null when none
-- Errors    : none
-- Locks     : none
-- Reads     : flight_field
-- Writes    : none
-- Called by : _apply_fdel, _stage_changes
-- Sources   : D37
-- Oracle    : msgx_outbox.carried_keys
-- ================================================================================================
create or replace function _carried_keys(p_flight jsonb) returns text[]
language plpgsql stable
as $$
begin
    return (
        select array_agg(distinct k.tag collate "C" order by k.tag collate "C")
          from (select jsonb_object_keys(p_flight -> 'set') as tag
                union all select jsonb_object_keys(p_flight -> 'replace')
                union all select jsonb_object_keys(p_flight -> 'apply')
                union all select jsonb_array_elements_text(p_flight -> 'clear')) k
         where exists (select 1 from flight_field f where f.tag = k.tag)
    );
end;
$$;

comment on function _carried_keys(jsonb) is 'Tags that a record carries, sorted by code point (CHANGED of a notice, D37).';
revoke all on function _carried_keys(jsonb) from public;
