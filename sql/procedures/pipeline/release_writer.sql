-- ================================================================================================
-- release_writer
-- Purpose   : Release what acquire_writer took.
-- Params    : p_now: clock, null = clock_timestamp()
-- Returns   : true when this session was the writer
-- Errors    : none
-- Locks     : pipeline_lock row FLIGHT_SCHD_WRITER
-- Reads     : none
-- Writes    : pipeline_lock
-- Called by : driver at the end
-- Sources   : OPS-1, D35
-- Oracle    : msgx_native.release_writer
-- ================================================================================================
create or replace function release_writer(p_now timestamptz) returns boolean
language plpgsql volatile security definer
as $$
begin
    update pipeline_lock
       set released_at = _resolve_now(p_now)
     where name = 'FLIGHT_SCHD_WRITER'
       and released_at is null
       and writer_pid = pg_backend_pid()
       and extract(epoch from writer_started)::text = current_setting('msgx.writer_started', true);
    if not found then
        return false;
    end if;
    perform set_config('msgx.writer_started', '', false);
    perform pg_advisory_unlock(_writer_key());
    return true;
end;
$$;

comment on function release_writer(timestamptz) is 'Gives the write right back; a clean end.';
revoke all on function release_writer(timestamptz) from public;
grant execute on function release_writer(timestamptz) to :"driver";
