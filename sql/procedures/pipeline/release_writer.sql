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
declare
    v_started timestamptz;
begin
    update pipeline_lock
       set released_at = _resolve_now(p_now)
     where name = 'FLIGHT_SCHD_WRITER'
       and released_at is null
       and writer_pid = pg_backend_pid()
       and _started_here(writer_started)
    returning writer_started into v_started;
    if not found then
        return false;
    end if;
    perform set_config('msgx.writer_started',
                       array_to_string(array_remove(string_to_array(current_setting('msgx.writer_started'), ' '), extract(epoch from v_started)::text), ' '), false);
    perform pg_advisory_unlock(_writer_key());
    return true;
end;
$$;

comment on function release_writer(timestamptz) is 'Gives the write right back; a clean end.';
revoke all on function release_writer(timestamptz) from public;
grant execute on function release_writer(timestamptz) to :"driver";
