-- ================================================================================================
-- _hold_target
-- Purpose   : Refuse whoever no longer holds the lease of a target.
-- Params    : p_target; p_token: of the claim
-- Returns   : floor of the target
-- Errors    : MX001 not read committed; MX503 the lease went to somebody else
-- Locks     : delivery_target row
-- Reads     : delivery_target
-- Writes    : none
-- Called by : confirm_events, fail_events, block_target, confirm_backfill, fail_backfill
-- Sources   : US-07/3
-- Oracle    : msgx_outbox.hold_target
-- ================================================================================================
create or replace function _hold_target(p_target text, p_token uuid) returns bigint
language plpgsql volatile
as $$
declare
    v_target delivery_target%rowtype;
begin
    perform _require_read_committed();
    select t.* into v_target from delivery_target t where t.target = p_target for update;
    -- A lease that ran out but that nobody took still belongs to its token: nobody else can have delivered.
    if v_target.lease_token is null or v_target.lease_token is distinct from p_token then
        perform _raise('MX503', format('the lease of target %s went to another relay; nothing of this claim was recorded', coalesce(left(p_target, 20), 'null')), null);
    end if;
    return v_target.floor_id;
end;
$$;

comment on function _hold_target(text, uuid) is 'Locks the row of a target for the holder of its lease; MX503 for everybody else.';
revoke all on function _hold_target(text, uuid) from public;
