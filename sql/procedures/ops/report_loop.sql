-- ================================================================================================
-- report_loop
-- Purpose   : Let a loop of the service say how it is.
-- Params    : p_loop: poller, pump, relay, backfill; p_state: RUNNING | FAILED | STOPPED; p_error: text without payload, or null
--             p_now: clock, null = clock_timestamp()
-- Returns   : nothing
-- Errors    : MX001 unknown state, no loop
-- Locks     : none
-- Reads     : loop_status
-- Writes    : loop_status
-- Called by : driver (run)
-- Sources   : OPS-2
-- Oracle    : msgx_ops.report_loop
-- ================================================================================================
create or replace function report_loop(p_loop text, p_state text, p_error text, p_now timestamptz) returns void
language plpgsql volatile security definer
as $$
declare
    v_now timestamptz := _resolve_now(p_now);
begin
    if coalesce(p_loop, '') = '' or coalesce(p_state, '') not in ('RUNNING', 'FAILED', 'STOPPED') then
        perform _raise('MX001', 'report_loop needs a loop, and RUNNING, FAILED or STOPPED', null);
    end if;
    insert into loop_status as l (loop, state, since, beat_at, failures, last_error)
    values (left(p_loop, 20), p_state, v_now, v_now, (p_state = 'FAILED')::integer, left(p_error, 1000))
    on conflict (loop) do update
       set state = excluded.state, beat_at = excluded.beat_at,
           since = case when l.state = excluded.state then l.since else excluded.since end,
           failures = case excluded.state when 'FAILED' then l.failures + 1 else 0 end,
           last_error = case excluded.state when 'FAILED' then excluded.last_error else l.last_error end;
end;
$$;

comment on function report_loop(text, text, text, timestamptz) is 'State and sign of life of a loop, for the view health (OPS-2).';
revoke all on function report_loop(text, text, text, timestamptz) from public;
grant execute on function report_loop(text, text, text, timestamptz) to :"driver";
