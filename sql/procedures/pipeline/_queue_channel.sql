-- ================================================================================================
-- _queue_channel
-- Purpose   : One NOTIFY channel per schema, so that airports in one database do not wake each other.
-- Params    : none
-- Returns   : name of the channel
-- Errors    : none
-- Locks     : none
-- Reads     : pg_class, pg_namespace
-- Writes    : none
-- Called by : enqueue_messages
-- Sources   : contract, one airport = one schema
-- Oracle    : msgx_native.queue_channel
-- ================================================================================================
create or replace function _queue_channel() returns text
language sql stable
as $$
    select n.nspname || '_queue'
      from pg_catalog.pg_class c
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where c.oid = 'pipeline_lock'::regclass
$$;

comment on function _queue_channel() is 'Channel on which enqueue_messages wakes the pump, derived from the schema name.';
revoke all on function _queue_channel() from public;
