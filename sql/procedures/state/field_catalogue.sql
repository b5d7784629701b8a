-- ================================================================================================
-- field_catalogue
-- Purpose   : Tell the driver which tags are scalars, texts, objects and collections.
-- Params    : none
-- Returns   : one row per tag
-- Errors    : none
-- Locks     : none
-- Reads     : flight_field
-- Writes    : none
-- Called by : driver at start
-- Sources   : contract 1
-- Oracle    : msgx_state.field_catalogue
-- ================================================================================================
create or replace function field_catalogue()
returns table (tag varchar, kind varchar, seq_tag varchar, max_items integer, attrs text[])
language plpgsql stable security definer
as $$
#variable_conflict use_column
begin
    return query
    select f.tag, f.kind, f.seq_tag, f.max_items, coalesce(f.attrs, '{}') from flight_field f order by f.tag;
end;
$$;

comment on function field_catalogue() is 'The SIS tags a record may carry, for the decoder of the driver.';
revoke all on function field_catalogue() from public;
grant execute on function field_catalogue() to :"driver";
grant execute on function field_catalogue() to :"operator";
grant execute on function field_catalogue() to :"report";
