-- ================================================================================================
-- release_target
-- Purpose   : Give the lease of a target back at a clean stop.
-- Params    : p_target; p_token: of the claim
--             p_now: clock, null = clock_timestamp()
-- Returns   : true when the token held it
-- Errors    : none
-- Locks     : delivery_target row
-- Reads     : none
-- Writes    : delivery_target
-- Called by : driver (relay, backfill)
-- Sources   : OPS-1
-- Oracle    : msgx_outbox.release_target
-- ================================================================================================
create or replace function release_target(p_target text, p_token uuid, p_now timestamptz) returns boolean
language plpgsql volatile security definer
as $$
begin
    update delivery_target t set lease_token = null, lease_until = _resolve_now(p_now)
     where t.target = p_target and t.lease_token = p_token;
    return found;
end;
$$;

comment on function release_target(text, uuid, timestamptz) is 'Gives the lease back, so that the next relay need not wait for its end.';
revoke all on function release_target(text, uuid, timestamptz) from public;
grant execute on function release_target(text, uuid, timestamptz) to :"driver";
