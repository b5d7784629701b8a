-- ================================================================================================
-- confirm_backfill
-- Purpose   : Record what is marked in the mailbox, or has gone there.
-- Params    : p_token: of the claim; p_message_ids, p_seqs: as claimed
--             p_now: clock, null = clock_timestamp()
-- Returns   : messages that are DONE now
-- Errors    : MX001 arrays of different length; MX503
-- Locks     : delivery_target row
-- Reads     : proc_state, pipeline_lock
-- Writes    : proc_state, delivery_target
-- Called by : driver (backfill)
-- Sources   : US-09/2, US-09/4, D17
-- Oracle    : msgx_outbox.confirm_backfill
-- ================================================================================================
create or replace function confirm_backfill(p_token uuid, p_message_ids bigint[], p_seqs integer[], p_now timestamptz) returns integer
language plpgsql volatile security definer
set jit = off
as $$
declare
    v_now   timestamptz := _resolve_now(p_now);
    v_floor bigint;
    v_done  integer;
    v_next  bigint;
begin
    if p_message_ids is null or cardinality(p_message_ids) is distinct from cardinality(p_seqs) then
        perform _raise('MX001', 'confirm_backfill needs a backfill_seq for each message', null);
    end if;
    v_floor := _hold_target('MAILBOX', p_token);
    -- A message requeued since the claim has a new result to be marked: its old mark is void.
    update proc_state s
       set backfill_status = 'DONE', backfilled_at = v_now
      from unnest(p_message_ids, p_seqs) as c (message_id, seq)
     where s.message_id = c.message_id and s.backfill_seq = c.seq and s.backfill_status in ('PENDING', 'CLAIMED');
    get diagnostics v_done = row_count;
    if cardinality(p_message_ids) = 0 then
        return 0;
    end if;
    -- One statement, one snapshot: the head that ends meanwhile is either open or still the head, and the floor passes
    -- neither. enqueue_messages lowers it for late ids.
    select least(
               (select min(s.message_id) from proc_state s
                 where s.backfill_status in ('PENDING', 'CLAIMED') and s.message_id >= v_floor and s.mailbox_id is not null),
               (select min(s.message_id) from proc_state s
                 where s.status in ('PENDING', 'FAILED')
                   and s.message_id >= (select l.queue_floor from pipeline_lock l where l.name = 'FLIGHT_SCHD_WRITER')))
      into v_next;
    update delivery_target t
       set floor_id = coalesce(v_next, greatest(v_floor, (select max(s.message_id) from proc_state s where s.message_id = any (p_message_ids)))),
           failures = 0, blocked_since = null, last_error = null, confirmed_at = v_now
     where t.target = 'MAILBOX';
    return v_done;
end;
$$;

comment on function confirm_backfill(uuid, bigint[], integer[], timestamptz) is 'Marks messages as backfilled unless they were requeued since the claim (US-09/4).';
revoke all on function confirm_backfill(uuid, bigint[], integer[], timestamptz) from public;
grant execute on function confirm_backfill(uuid, bigint[], integer[], timestamptz) to :"driver";
