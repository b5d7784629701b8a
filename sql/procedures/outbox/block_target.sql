-- ================================================================================================
-- block_target
-- Purpose   : Book an error of the target as a whole; it exhausts nothing.
-- Params    : p_target; p_token: of the claim; p_error: text without payload
--             p_now: clock, null = clock_timestamp()
-- Returns   : failures in a row
-- Errors    : MX503
-- Locks     : delivery_target row
-- Reads     : none
-- Writes    : delivery_target
-- Called by : driver (relay, backfill)
-- Sources   : D39, US-07/6
-- Oracle    : msgx_outbox.block_target
-- ================================================================================================
create or replace function block_target(p_target text, p_token uuid, p_error text, p_now timestamptz) returns integer
language plpgsql volatile security definer
as $$
declare
    v_now      timestamptz := _resolve_now(p_now);
    v_failures integer;
begin
    perform _hold_target(p_target, p_token);
    update delivery_target t
       set failures = t.failures + 1, blocked_since = coalesce(t.blocked_since, v_now),
           last_error = left(regexp_replace(coalesce(p_error, 'no reason given'), E'[\\x01-\\x1f]', ' ', 'g'), 1000)
     where t.target = p_target
    returning t.failures into v_failures;
    return v_failures;
end;
$$;

comment on function block_target(text, uuid, text, timestamptz) is 'Notes that a target refuses everything: it waits, no event counts an attempt (D39).';
revoke all on function block_target(text, uuid, text, timestamptz) from public;
grant execute on function block_target(text, uuid, text, timestamptz) to :"driver";
