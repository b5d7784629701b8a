-- ================================================================================================
-- _writer_key
-- Purpose   : One key per schema, so that airports in one database do not block each other.
-- Params    : none
-- Returns   : 64-bit key
-- Errors    : none
-- Locks     : none
-- Reads     : pg_class, pg_namespace
-- Writes    : none
-- Called by : acquire_writer, release_writer
-- Sources   : contract, one airport = one schema
-- Oracle    : msgx_native.writer_key
-- ================================================================================================
create or replace function _writer_key() returns bigint
language sql stable
as $$
    select hashtextextended(n.nspname || '.FLIGHT_SCHD_WRITER', 0)
      from pg_catalog.pg_class c
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where c.oid = 'pipeline_lock'::regclass
$$;

comment on function _writer_key() is 'Advisory lock key of the write right, derived from the schema name.';
revoke all on function _writer_key() from public;
