-- ================================================================================================
-- _lock_writer
-- Purpose   : First step of every transaction that changes the state.
-- Params    : none
-- Returns   : nothing; the row stays locked to the end of the transaction
-- Errors    : MX401 not the writer; MX902 the row is missing
-- Locks     : pipeline_lock row FLIGHT_SCHD_WRITER
-- Reads     : pipeline_lock
-- Writes    : none
-- Called by : process_message, record_failure
-- Sources   : FS-3.2-5, OPS-1, architecture invariant 2
-- Oracle    : msgx_pipeline.lock_writer
-- ================================================================================================
create or replace function _lock_writer() returns void
language plpgsql volatile
as $$
declare
    v_lock pipeline_lock%rowtype := _lock_row();
begin
    -- The session variable catches a reused pid and a pooler that hands the session to somebody else.
    if v_lock.released_at is not null
       or v_lock.writer_pid is distinct from pg_backend_pid()
       or not _started_here(v_lock.writer_started)
    then
        perform _raise('MX401',
            format('this session (pid %s) is not the writer (pid %s); call acquire_writer on the connection that writes and use no transaction pooler',
                   pg_backend_pid(), coalesce(v_lock.writer_pid::text, 'none')), null);
    end if;
end;
$$;

comment on function _lock_writer() is 'Locks the writer row and makes sure that this session is the writer (MX401).';
revoke all on function _lock_writer() from public;
