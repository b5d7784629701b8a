-- ================================================================================================
-- is_redelivered
-- Purpose   : Tell whether an operator sends a claimed notice again.
-- Params    : p_event_id
-- Returns   : boolean
-- Errors    : none
-- Locks     : none
-- Reads     : msg_event
-- Writes    : none
-- Called by : driver (relay), in the statement of the claim
-- Sources   : D39
-- Oracle    : msgx_outbox.is_redelivered
-- ================================================================================================
-- Volatile: it has to see what the claim saw, which may be newer than the snapshot of the statement.
create or replace function is_redelivered(p_event_id bigint) returns boolean
language plpgsql volatile security definer
as $$
begin
    return coalesce((select e.redelivered from msg_event e where e.event_id = p_event_id), false);
end;
$$;

comment on function is_redelivered(bigint) is 'True for a notice that was DEAD and is sent again by an operator (header redelivered, D39).';
revoke all on function is_redelivered(bigint) from public;
grant execute on function is_redelivered(bigint) to :"driver";
