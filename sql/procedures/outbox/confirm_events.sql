-- ================================================================================================
-- confirm_events
-- Purpose   : Record what the broker has acknowledged.
-- Params    : p_target; p_token: of the claim
--             p_flids, p_event_ids: one pair per acknowledged record, as claimed
--             p_now: clock, null = clock_timestamp()
-- Returns   : events that are SENT now
-- Errors    : MX001 no event target, arrays of different length, an event that is none; MX503
-- Locks     : delivery_target row
-- Reads     : msg_event
-- Writes    : msg_event, delivery_target
-- Called by : driver (relay)
-- Sources   : US-07/2, US-07/3, D39
-- Oracle    : msgx_outbox.confirm_events
-- ================================================================================================
create or replace function confirm_events(p_target text, p_token uuid, p_flids text[], p_event_ids bigint[], p_now timestamptz) returns integer
language plpgsql volatile security definer
set jit = off
as $$
declare
    v_now     timestamptz := _resolve_now(p_now);
    v_floor   bigint;
    v_sent    integer;
    v_unknown bigint;
begin
    if p_flids is null or cardinality(p_flids) is distinct from cardinality(p_event_ids) then
        perform _raise('MX001', 'confirm_events needs a flid for each event_id', null);
    end if;
    if p_target not in ('KAFKA:msg', 'KAFKA:schd') then
        perform _raise('MX001', format('%s takes no events', left(p_target, 20)), null);
    end if;
    v_floor := _hold_target(p_target, p_token);
    -- A claim names events that are there; an id beyond them would let the floor pass what is still to come.
    select min(c.upto) into v_unknown from unnest(p_flids, p_event_ids) as c (flid, upto)
     where not exists (select 1 from msg_event e where e.event_id = c.upto and e.flid = c.flid and e.target = p_target);
    if v_unknown is not null then
        perform _raise('MX001', format('event %s of target %s is not an event of that flight', v_unknown, p_target), null);
    end if;
    if p_target = 'KAFKA:msg' then
        update msg_event e
           set status = 'SENT', sent_at = v_now, lease_token = p_token, last_error = null
         where e.event_id = any (p_event_ids) and e.target = 'KAFKA:msg' and e.status = 'PENDING';
    else
        -- A newer state closes what failed before it; a TOMBSTONE is never DEAD.
        update msg_event e
           set status = 'SENT', sent_at = v_now, lease_token = p_token, last_error = null
          -- One branch per partial index: nothing that was sent is read.
          from (select p.event_id from unnest(p_flids, p_event_ids) as c (flid, upto)
                  join msg_event p on p.flid = c.flid and p.event_id <= c.upto
                 where p.status = 'PENDING' and p.target = 'KAFKA:schd'
                 union all
                select d.event_id from unnest(p_flids, p_event_ids) as c (flid, upto)
                  join msg_event d on d.flid = c.flid and d.event_id <= c.upto
                 where d.status = 'DEAD' and d.target = 'KAFKA:schd') as k
         where e.event_id = k.event_id and e.status in ('PENDING', 'DEAD');
    end if;
    get diagnostics v_sent = row_count;
    if cardinality(p_event_ids) = 0 then
        return 0;
    end if;
    update delivery_target t
       set floor_id = coalesce((select min(e.event_id) from msg_event e
                                 where e.status = 'PENDING' and e.target = p_target and e.event_id >= v_floor),
                               greatest(v_floor, (select max(i) + 1 from unnest(p_event_ids) i))),
           failures = 0, blocked_since = null, last_error = null, confirmed_at = v_now
     where t.target = p_target;
    return v_sent;
end;
$$;

comment on function confirm_events(text, uuid, text[], bigint[], timestamptz) is 'Marks events SENT after the report of the broker, for the holder of the lease only (US-07/1).';
revoke all on function confirm_events(text, uuid, text[], bigint[], timestamptz) from public;
grant execute on function confirm_events(text, uuid, text[], bigint[], timestamptz) to :"driver";
