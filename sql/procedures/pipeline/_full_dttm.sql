-- ================================================================================================
-- _full_dttm
-- Purpose   : Only a complete DTTM can be compared.
-- Params    : p_dttm: META DTTM as sent
-- Returns   : the same text or null
-- Errors    : none
-- Locks     : none
-- Reads     : none
-- Writes    : none
-- Called by : _identity_of, process_message, _update_mains, record_failure
-- Sources   : D15, D16, D33
-- Oracle    : msgx_pipeline.full_dttm
-- ================================================================================================
create or replace function _full_dttm(p_dttm text) returns text
language plpgsql immutable
as $$
begin
    return case when p_dttm ~ '^[0-9]{4}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])([01][0-9]|2[0-3])[0-5][0-9][0-5][0-9]$' then p_dttm end;
end;
$$;

comment on function _full_dttm(text) is 'DTTM when it is a full yyyyMMddHHmmss, else null.';
revoke all on function _full_dttm(text) from public;
