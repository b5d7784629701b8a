-- ================================================================================================
-- redeliver_events
-- Purpose   : Send notices again that were given up.
-- Params    : p_event_ids: DEAD notices, null = all
--             p_operator, p_reason: kept in operator_audit
--             p_now: clock, null = clock_timestamp()
-- Returns   : notices that wait now
-- Errors    : MX001 operator or reason missing, not read committed; MX002 an event that is no DEAD notice
-- Locks     : delivery_target row KAFKA:msg
-- Reads     : msg_event
-- Writes    : msg_event, delivery_target, operator_audit
-- Called by : operator, driver (redeliver)
-- Sources   : D39, US-07/2
-- Oracle    : msgx_ops.redeliver_events
-- ================================================================================================
create or replace function redeliver_events(p_event_ids bigint[], p_operator text, p_reason text, p_now timestamptz) returns integer
language plpgsql volatile security definer
as $$
declare
    v_now     timestamptz := _resolve_now(p_now);
    v_unknown bigint;
    v_first   bigint;
    v_count   integer;
begin
    if coalesce(btrim(p_operator), '') = '' or coalesce(btrim(p_reason), '') = '' then
        perform _raise('MX001', 'redeliver_events needs an operator and a reason', null);
    end if;
    perform _require_read_committed();
    -- The floor must not pass what is opened again.
    perform 1 from delivery_target t where t.target = 'KAFKA:msg' for update;
    select min(w.event_id) into v_unknown from unnest(p_event_ids) as w (event_id)
     where not exists (select 1 from msg_event e where e.event_id = w.event_id and e.status = 'DEAD' and e.kind = 'NOTICE');
    if v_unknown is not null then
        perform _raise('MX002', format('event %s is no DEAD notice', v_unknown), null);
    end if;
    with opened as (
        update msg_event e
           set status = 'PENDING', attempts = 0, next_attempt_at = null, last_error = null, redelivered = true
         where e.status = 'DEAD' and e.kind = 'NOTICE' and (p_event_ids is null or e.event_id = any (p_event_ids))
        returning e.event_id
    )
    select count(*), min(o.event_id) into v_count, v_first from opened o;
    update delivery_target t set floor_id = v_first where t.target = 'KAFKA:msg' and t.floor_id > v_first;
    insert into operator_audit (done_at, action, operator, session_name, reason, detail)
    values (v_now, 'redeliver_events', left(p_operator, 200), session_user, left(p_reason, 1000),
            jsonb_build_object('events', v_count, 'first', v_first));
    return v_count;
end;
$$;

comment on function redeliver_events(bigint[], text, text, timestamptz) is 'Lets DEAD notices be sent again, with the header redelivered; audited (D39).';
revoke all on function redeliver_events(bigint[], text, text, timestamptz) from public;
grant execute on function redeliver_events(bigint[], text, text, timestamptz) to :"operator";
