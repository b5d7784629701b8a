-- ================================================================================================
-- _take_target
-- Purpose   : Take or renew the lease of a target, and make the commit of this transaction flush.
-- Params    : p_target: KAFKA:msg, KAFKA:schd or MAILBOX; p_token: who delivers; p_seconds: length of the lease; p_now
-- Returns   : floor of the target
-- Errors    : MX001 unknown target, no token, lease below 1 s or above 1 h, not read committed; MX503 somebody else holds the lease
-- Locks     : delivery_target row
-- Reads     : delivery_target
-- Writes    : delivery_target
-- Called by : claim_events, claim_backfill
-- Sources   : contract 4 (before anything leaves), US-07/1
-- Oracle    : msgx_outbox.take_target
-- ================================================================================================
create or replace function _take_target(p_target text, p_token uuid, p_seconds integer, p_now timestamptz) returns bigint
language plpgsql volatile
as $$
declare
    v_target delivery_target%rowtype;
begin
    perform _require_read_committed();
    if p_token is null or p_seconds is null or p_seconds not between 1 and 3600 then
        perform _raise('MX001', 'a claim needs a token and a lease of 1 to 3600 seconds', null);
    end if;
    -- A commit without a flush would let effects leave that a crash of the server takes back.
    if current_setting('synchronous_commit') in ('off', 'local') then
        perform set_config('synchronous_commit', 'on', true);
    end if;
    select t.* into v_target from delivery_target t where t.target = p_target for update;
    if not found then
        perform _raise('MX001', format('%s is no target; they are KAFKA:msg, KAFKA:schd and MAILBOX', coalesce(left(p_target, 20), 'null')), null);
    end if;
    -- A clock that went back by less than a lease lengthens it; after a longer step the lease counts as over.
    if v_target.lease_token <> p_token and v_target.lease_until > p_now
       and v_target.lease_until <= p_now + make_interval(secs => 2 * coalesce(v_target.lease_seconds, 3600))
    then
        perform _raise('MX503', format('target %s is leased to another relay until %s', p_target, v_target.lease_until), null);
    end if;
    update delivery_target t
       set lease_token = p_token, lease_until = p_now + make_interval(secs => p_seconds), lease_seconds = p_seconds
     where t.target = p_target;
    return v_target.floor_id;
end;
$$;

comment on function _take_target(text, uuid, integer, timestamptz) is 'The claim of a target: lease, and the write that makes the commit flush all that was read (contract 4).';
revoke all on function _take_target(text, uuid, integer, timestamptz) from public;
