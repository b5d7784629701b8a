-- ================================================================================================
-- _started_here
-- Purpose   : Tell whether a write right was taken in this session, whatever its pid.
-- Params    : p_started: writer_started of pipeline_lock
-- Returns   : boolean
-- Errors    : none
-- Locks     : none
-- Reads     : none
-- Writes    : none
-- Called by : _lock_writer, acquire_writer, release_writer
-- Sources   : OPS-1, contract 4
-- Oracle    : msgx_native.started_here
-- ================================================================================================
create or replace function _started_here(p_started timestamptz) returns boolean
language plpgsql stable
as $$
begin
    return coalesce(extract(epoch from p_started)::text = any (string_to_array(current_setting('msgx.writer_started', true), ' ')), false);
end;
$$;

comment on function _started_here(timestamptz) is 'True when this session took the write right at that instant; a session variable holds the instants.';
revoke all on function _started_here(timestamptz) from public;
