-- ================================================================================================
-- _finish_message
-- Purpose   : The one way into a terminal status.
-- Params    : p_message_id; p_meta, p_key, p_hash: what the message says of itself, null = as stored
--             p_status: SUCCEEDED | SKIPPED | DEAD; p_class: for DEAD; p_reason; p_duplicate_of; p_result; p_now
-- Returns   : the outcome as process_message returns it
-- Errors    : none
-- Locks     : none
-- Reads     : none
-- Writes    : proc_state, pipeline_lock (floor)
-- Called by : process_message, _book_failure
-- Sources   : US-03/6, US-09/1, D17
-- Oracle    : msgx_pipeline.finish_message
-- ================================================================================================
create or replace function _finish_message(
    p_message_id   bigint,
    p_meta         jsonb,
    p_key          text,
    p_hash         bytea,
    p_status       text,
    p_class        text,
    p_reason       text,
    p_duplicate_of bigint,
    p_result       jsonb,
    p_now          timestamptz
) returns jsonb
language plpgsql volatile
as $$
begin
    update proc_state
       set status           = p_status,
           error_class      = p_class,
           last_error_class = case when p_status = 'DEAD' then coalesce(last_error_class, p_class) end,
           reason           = left(p_reason, 4000),
           attempts         = case when p_status = 'DEAD' then attempts else 0 end,
           next_attempt_at  = null,
           processed_at     = p_now,
           duplicate_of     = p_duplicate_of,
           result           = p_result,
           sndr             = coalesce(left(p_meta ->> 'SNDR', 200), sndr),
           type             = coalesce(left(p_meta ->> 'TYPE', 200), type),
           styp             = coalesce(left(p_meta ->> 'STYP', 200), styp),
           seqn             = coalesce(left(p_meta ->> 'SEQN', 200), seqn),
           dttm             = coalesce(left(p_meta ->> 'DTTM', 200), dttm),
           identity_key     = coalesce(p_key, identity_key),
           payload_hash     = coalesce(p_hash, payload_hash),
           backfill_status  = 'PENDING',
           backfill_seq     = backfill_seq + 1,
           backfill_attempts = 0,
           -- Due at once, whatever the clock does next.
           backfill_next_at = null
     where message_id = p_message_id;
    -- The floor moves in steps: every move leaves a dead version of the one lock row behind.
    update pipeline_lock set queue_floor = p_message_id
     where name = 'FLIGHT_SCHD_WRITER' and queue_floor + 200 <= p_message_id;
    return jsonb_strip_nulls(jsonb_build_object(
        'message_id', p_message_id, 'status', p_status, 'error_class', p_class, 'reason', left(p_reason, 4000),
        'duplicate_of', p_duplicate_of, 'result', p_result));
end;
$$;

comment on function _finish_message(bigint, jsonb, text, bytea, text, text, text, bigint, jsonb, timestamptz) is 'Terminal status and backfill intent of a message, in the transaction of its effects (US-09/1).';
revoke all on function _finish_message(bigint, jsonb, text, bytea, text, text, text, bigint, jsonb, timestamptz) from public;
