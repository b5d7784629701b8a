-- ================================================================================================
-- _resolve_now
-- Purpose   : One reading of p_now.
-- Params    : p_now: clock, null = clock_timestamp()
-- Returns   : instant
-- Errors    : MX001 out of range
-- Locks     : none
-- Reads     : none
-- Writes    : none
-- Called by : every entry point with p_now
-- Sources   : contract, Time
-- Oracle    : msgx_pipeline.resolve_now
-- ================================================================================================
create or replace function _resolve_now(p_now timestamptz) returns timestamptz
language plpgsql volatile
as $$
begin
    if p_now not between '2000-01-01 00:00:00+00' and '9000-01-01 00:00:00+00' then
        perform _raise('MX001', 'p_now is outside the years 2000 to 9000; null is the clock of the server', null);
    end if;
    return coalesce(p_now, clock_timestamp());
end;
$$;

comment on function _resolve_now(timestamptz) is 'The injected clock, or the real one; refuses an instant outside the years 2000 to 9000 (MX001).';
revoke all on function _resolve_now(timestamptz) from public;
