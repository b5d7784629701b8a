-- ================================================================================================
-- contract_version
-- Purpose   : Let the driver refuse a schema it does not fit.
-- Params    : none
-- Returns   : 1
-- Errors    : none
-- Locks     : none
-- Reads     : none
-- Writes    : none
-- Called by : driver at start
-- Sources   : contract 4
-- Oracle    : msgx_pipeline.contract_version
-- ================================================================================================
create or replace function contract_version() returns integer
language sql immutable security definer
as $$
    select 1
$$;

comment on function contract_version() is 'Version of the contract between schema and driver.';
revoke all on function contract_version() from public;
grant execute on function contract_version() to :"driver";
grant execute on function contract_version() to :"operator";
grant execute on function contract_version() to :"report";
