-- ================================================================================================
-- fail_backfill
-- Purpose   : Book marks that failed, with a backoff of their own.
-- Params    : p_token: of the claim; p_message_ids, p_seqs: as claimed; p_error: text without payload
--             p_now: clock, null = clock_timestamp()
-- Returns   : messages that wait now
-- Errors    : MX001 arrays of different length; MX503
-- Locks     : delivery_target row
-- Reads     : setting
-- Writes    : proc_state, delivery_target
-- Called by : driver (backfill)
-- Sources   : US-09/2
-- Oracle    : msgx_outbox.fail_backfill
-- ================================================================================================
create or replace function fail_backfill(p_token uuid, p_message_ids bigint[], p_seqs integer[], p_error text, p_now timestamptz) returns integer
language plpgsql volatile security definer
set jit = off
as $$
declare
    v_now    timestamptz := _resolve_now(p_now);
    v_base   numeric := _get_setting('backfill.backoff_base')::numeric;
    v_cap    numeric := _get_setting('backfill.backoff_cap')::numeric;
    v_failed integer;
begin
    if p_message_ids is null or cardinality(p_message_ids) is distinct from cardinality(p_seqs) then
        perform _raise('MX001', 'fail_backfill needs a backfill_seq for each message', null);
    end if;
    perform _hold_target('MAILBOX', p_token);
    update proc_state s
       set backfill_attempts = s.backfill_attempts + 1,
           backfill_next_at  = v_now + _backoff(v_base, v_cap, s.backfill_attempts)
      from unnest(p_message_ids, p_seqs) as c (message_id, seq)
     where s.message_id = c.message_id and s.backfill_seq = c.seq and s.backfill_status in ('PENDING', 'CLAIMED');
    get diagnostics v_failed = row_count;
    update delivery_target t
       set last_error = left(regexp_replace(coalesce(p_error, 'no reason given'), E'[\\x01-\\x1f]', ' ', 'g'), 1000)
     where t.target = 'MAILBOX';
    return v_failed;
end;
$$;

comment on function fail_backfill(uuid, bigint[], integer[], text, timestamptz) is 'Counts failed marks and sets their backoff; a mark never gives up (US-09/2).';
revoke all on function fail_backfill(uuid, bigint[], integer[], text, timestamptz) from public;
grant execute on function fail_backfill(uuid, bigint[], integer[], text, timestamptz) to :"driver";
