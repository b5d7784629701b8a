-- ================================================================================================
-- _backoff
-- Purpose   : The one formula of all waits after a failure.
-- Params    : p_base: first wait in seconds; p_cap: longest wait in seconds; p_before: failures before this one
-- Returns   : the wait; it doubles with every failure
-- Errors    : none
-- Locks     : none
-- Reads     : none
-- Writes    : none
-- Called by : _book_failure, fail_events, fail_backfill
-- Sources   : D14, US-07/2, US-09/2
-- Oracle    : msgx_pipeline.backoff
-- ================================================================================================
create or replace function _backoff(p_base numeric, p_cap numeric, p_before integer) returns interval
language plpgsql immutable
as $$
begin
    return make_interval(secs => least(p_cap, p_base * power(2::numeric, least(greatest(p_before, 0), 20)))::double precision);
end;
$$;

comment on function _backoff(numeric, numeric, integer) is 'Wait after a failure: base, doubled with every one before it, up to the cap (D14).';
revoke all on function _backoff(numeric, numeric, integer) from public;
