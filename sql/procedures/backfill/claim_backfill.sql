-- ================================================================================================
-- claim_backfill
-- Purpose   : Give the backfill what is due, in one flushed transaction that also writes. Call it in autocommit.
-- Params    : p_source: mailbox; p_token: of this worker; p_limit: rows at most; p_lease_seconds
--             p_now: clock, null = clock_timestamp()
-- Returns   : terminal messages by id; completed_at in the airport's local time; gone = the mailbox has been numbered anew since, there is no row to mark
-- Errors    : MX001, MX503
-- Locks     : delivery_target row
-- Reads     : proc_state, inbox_cursor, setting
-- Writes    : delivery_target
-- Called by : driver (backfill)
-- Sources   : US-09/1, US-09/2, D17, D38, contract 4
-- Oracle    : msgx_outbox.claim_backfill
-- ================================================================================================
create or replace function claim_backfill(p_source text, p_token uuid, p_limit integer, p_lease_seconds integer, p_now timestamptz)
returns table (message_id bigint, mailbox_id bigint, backfill_seq integer, status varchar, completed_at timestamp, gone boolean)
language plpgsql volatile security definer
set jit = off
as $$
#variable_conflict use_column
declare
    v_now     timestamptz := _resolve_now(p_now);
    v_floor   bigint;
    v_offset  bigint;
    v_zone    text := _get_setting('airport.time_zone');
    v_overdue timestamptz := v_now - make_interval(secs => _get_setting('backfill.overdue_after')::integer);
    v_beyond  timestamptz := v_now + make_interval(secs => _get_setting('backfill.backoff_cap')::integer);
begin
    if p_source is null or coalesce(p_limit, 0) not between 1 and 10000 then
        perform _raise('MX001', 'claim_backfill needs a source, and a limit of 1 to 10000', null);
    end if;
    v_floor := _take_target('MAILBOX', p_token, p_lease_seconds, v_now);
    select c.id_offset into v_offset from inbox_cursor c where c.source = p_source;
    return query
    with due as (
        select s.* from proc_state s
         where s.backfill_status in ('PENDING', 'CLAIMED') and s.message_id >= v_floor
           and s.source = p_source and s.mailbox_id is not null
           and (s.backfill_next_at is null or s.backfill_next_at <= v_now or s.backfill_next_at > v_beyond)
         order by s.message_id
         limit p_limit
    ), overdue as (
        -- A mark that is overdue no longer waits for its backoff (US-09), but takes no place of one that is due.
        select s.* from proc_state s
         where s.backfill_status in ('PENDING', 'CLAIMED') and s.message_id >= v_floor
           and s.source = p_source and s.mailbox_id is not null
           and s.backfill_next_at > v_now and s.backfill_next_at <= v_beyond and s.enqueued_at <= v_overdue
         order by s.message_id
         limit greatest(p_limit - (select count(*) from due), 0)
    )
    select s.message_id, s.mailbox_id, s.backfill_seq, s.status, s.processed_at at time zone v_zone,
           s.message_id - s.mailbox_id is distinct from v_offset
      from (select * from due union all select * from overdue) s
     order by s.message_id;
end;
$$;

comment on function claim_backfill(text, uuid, integer, integer, timestamptz) is 'Terminal messages whose mailbox row is to be marked, leased to the token (US-09).';
revoke all on function claim_backfill(text, uuid, integer, integer, timestamptz) from public;
grant execute on function claim_backfill(text, uuid, integer, integer, timestamptz) to :"driver";
