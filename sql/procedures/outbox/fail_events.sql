-- ================================================================================================
-- fail_events
-- Purpose   : Book errors that concern single records.
-- Params    : p_target; p_token: of the claim
--             p_event_ids: as claimed; p_errors: one text each, without payload
--             p_now: clock, null = clock_timestamp()
-- Returns   : {"failed", "dead"}
-- Errors    : MX001 arrays of different length; MX503
-- Locks     : delivery_target row
-- Reads     : msg_event, setting
-- Writes    : msg_event
-- Called by : driver (relay)
-- Sources   : US-07/2, D39
-- Oracle    : msgx_outbox.fail_events
-- ================================================================================================
create or replace function fail_events(p_target text, p_token uuid, p_event_ids bigint[], p_errors text[], p_now timestamptz) returns jsonb
language plpgsql volatile security definer
set jit = off
as $$
declare
    v_now    timestamptz := _resolve_now(p_now);
    v_limit  integer := _get_setting('delivery.max_attempts')::integer;
    v_base   numeric := _get_setting('delivery.backoff_base')::numeric;
    v_cap    numeric := _get_setting('delivery.backoff_cap')::numeric;
    v_failed integer;
    v_dead   integer;
begin
    if p_event_ids is null or cardinality(p_event_ids) is distinct from cardinality(p_errors) then
        perform _raise('MX001', 'fail_events needs an error for each event_id', null);
    end if;
    perform _hold_target(p_target, p_token);
    with given as (
        select c.flid, c.event_id as upto, c.kind, f.error
          from unnest(p_event_ids, p_errors) as f (event_id, error)
          join msg_event c on c.event_id = f.event_id and c.target = p_target
    ), booked as (
        -- A state stands for all events of its flight up to it; a notice for itself. What a TOMBSTONE absorbs waits with it.
        update msg_event e
           set attempts        = e.attempts + 1,
               status          = case when g.kind <> 'TOMBSTONE' and e.attempts + 1 >= v_limit then 'DEAD' else 'PENDING' end,
               next_attempt_at = v_now + _backoff(v_base, v_cap, e.attempts),
               last_error      = left(regexp_replace(coalesce(g.error, 'no reason given'), E'[\\x01-\\x1f]', ' ', 'g'), 1000)
          from given g
         where e.flid = g.flid and e.target = p_target and e.status = 'PENDING'
           and (e.event_id = g.upto or (p_target = 'KAFKA:schd' and e.event_id < g.upto))
        returning e.status
    )
    select count(*), count(*) filter (where b.status = 'DEAD') into v_failed, v_dead from booked b;
    return jsonb_build_object('failed', v_failed, 'dead', v_dead);
end;
$$;

comment on function fail_events(text, uuid, bigint[], text[], timestamptz) is 'Counts a failed delivery of single records and sets their backoff; DEAD when exhausted, a TOMBSTONE never (D39).';
revoke all on function fail_events(text, uuid, bigint[], text[], timestamptz) from public;
grant execute on function fail_events(text, uuid, bigint[], text[], timestamptz) to :"driver";
