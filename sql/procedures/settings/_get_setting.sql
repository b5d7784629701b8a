-- ================================================================================================
-- _get_setting
-- Purpose   : Read one setting.
-- Params    : p_name: dotted name
-- Returns   : its value, never null
-- Errors    : MX301 no such setting
-- Locks     : none
-- Reads     : setting
-- Writes    : none
-- Called by : every routine whose rule a setting decides
-- Sources   : docs/decisions.md
-- Oracle    : msgx_ops.get_setting
-- ================================================================================================
create or replace function _get_setting(p_name text) returns text
language plpgsql stable
as $$
declare
    v_value text;
begin
    select s.value into v_value from setting s where s.name = p_name;
    if v_value is null then
        perform _raise('MX301', format('setting %s is missing: the schema is older or newer than this routine; run migrate up', p_name), null);
    end if;
    return v_value;
end;
$$;

comment on function _get_setting(text) is 'Value of a setting; MX301 when there is none of that name.';
revoke all on function _get_setting(text) from public;
