-- ================================================================================================
-- claim_events
-- Purpose   : Give a relay what is due, in one flushed transaction that also writes. Call it in autocommit.
-- Params    : p_target: KAFKA:msg | KAFKA:schd
--             p_token: of this relay; a claim renews its lease
--             p_limit: rows at most
--             p_lease_seconds: longer than the broker client may still deliver
--             p_now: clock, null = clock_timestamp()
-- Returns   : KAFKA:msg: notices by event_id, none while the first waits. KAFKA:schd: per FLID one row for all its events up to event_id: the first TOMBSTONE, else the projection
-- Errors    : MX001, MX503
-- Locks     : delivery_target row
-- Reads     : msg_event, setting, pipeline_lock, flight_schd and details
-- Writes    : delivery_target
-- Called by : driver (relay)
-- Sources   : US-07/1, US-07/2, US-07/4, D6, D18, contract 4
-- Oracle    : msgx_outbox.claim_events
-- ================================================================================================
create or replace function claim_events(p_target text, p_token uuid, p_limit integer, p_lease_seconds integer, p_now timestamptz)
returns table (event_id bigint, kind varchar, flid varchar, message_id bigint, state_version bigint, updated_at text, epoch integer, value jsonb)
language plpgsql volatile security definer
set jit = off
as $$
#variable_conflict use_column
declare
    v_now       timestamptz := _resolve_now(p_now);
    v_floor     bigint;
    v_stop      bigint;
    v_epoch     integer;
    v_tombstone text := _get_setting('kafka.tombstone');
    v_beyond    timestamptz := v_now + make_interval(secs => _get_setting('delivery.backoff_cap')::integer);
begin
    if p_target not in ('KAFKA:msg', 'KAFKA:schd') or coalesce(p_limit, 0) not between 1 and 10000 then
        perform _raise('MX001', 'claim_events needs KAFKA:msg or KAFKA:schd, and a limit of 1 to 10000', null);
    end if;
    v_floor := _take_target(p_target, p_token, p_lease_seconds, v_now);
    select l.epoch into v_epoch from pipeline_lock l where l.name = 'FLIGHT_SCHD_WRITER';
    if p_target = 'KAFKA:msg' then
        -- The first that waits for its backoff holds back all behind it.
        select min(e.event_id) into v_stop from msg_event e
         where e.status = 'PENDING' and e.target = 'KAFKA:msg' and e.event_id >= v_floor
           and e.next_attempt_at > v_now and e.next_attempt_at <= v_beyond;
        return query
        select e.event_id, e.kind, e.flid, e.message_id, e.state_version,
               to_char(e.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), v_epoch, e.payload
          from msg_event e
         where e.status = 'PENDING' and e.target = 'KAFKA:msg' and e.event_id >= v_floor and (v_stop is null or e.event_id < v_stop)
         order by e.event_id
         limit p_limit;
        return;
    end if;
    -- One statement, one snapshot: what is projected is at least as new as every event it stands for.
    return query
    with first_due as (
        select e.flid, e.event_id from msg_event e
         where e.status = 'PENDING' and e.target = 'KAFKA:schd' and e.event_id >= v_floor
           and (e.next_attempt_at is null or e.next_attempt_at <= v_now or e.next_attempt_at > v_beyond)
           -- What can not be sent must not fill the window: behind a TOMBSTONE that waits, or a STATE of nothing.
           and not exists (select 1 from msg_event t
                            where t.status = 'PENDING' and t.target = 'KAFKA:schd' and t.flid = e.flid and t.kind = 'TOMBSTONE'
                              and t.event_id < e.event_id and t.next_attempt_at > v_now and t.next_attempt_at <= v_beyond)
           and (e.kind = 'TOMBSTONE' or exists (select 1 from flight_schd s where s.flid = e.flid))
         order by e.event_id
         limit p_limit * 4
    ), flight as (
        select d.flid, min(d.event_id) as first_id from first_due d group by d.flid order by 2 limit p_limit
    ), upto as (
        select u.*
          from flight f
         cross join lateral (select min(t.event_id) as event_id from msg_event t
                              where t.status = 'PENDING' and t.target = 'KAFKA:schd' and t.flid = f.flid and t.kind = 'TOMBSTONE') as grave
         cross join lateral (select e.* from msg_event e
                              where e.status = 'PENDING' and e.target = 'KAFKA:schd' and e.flid = f.flid
                                and (grave.event_id is null or e.event_id <= grave.event_id)
                              order by e.event_id desc limit 1) as u
    )
    select u.event_id, u.kind, u.flid, coalesce((p.doc ->> 'LAST_MESSAGE_ID')::bigint, u.message_id),
           coalesce((p.doc ->> 'STATE_VERSION')::bigint, u.state_version),
           coalesce(p.doc ->> 'UPDATED_AT', to_char(u.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')),
           v_epoch,
           case when u.kind = 'STATE' then p.doc
                when v_tombstone = 'object' then jsonb_build_object('DELETED', true, 'FLID', u.flid) end
      from upto u
      left join flight_projection((select coalesce(array_agg(s.flid::text), '{}') from upto s where s.kind = 'STATE')) as p (doc)
        on p.doc ->> 'FLID' = u.flid and u.kind = 'STATE'
     where u.kind = 'TOMBSTONE' or p.doc is not null
     order by u.event_id;
end;
$$;

comment on function claim_events(text, uuid, integer, integer, timestamptz) is 'What a relay may deliver now, leased to its token; flushed before it leaves (US-07, contract 4).';
revoke all on function claim_events(text, uuid, integer, integer, timestamptz) from public;
grant execute on function claim_events(text, uuid, integer, integer, timestamptz) to :"driver";
