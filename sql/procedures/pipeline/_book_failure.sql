-- ================================================================================================
-- _book_failure
-- Purpose   : Count the attempt, wait or give up.
-- Params    : p_message_id: a PENDING or FAILED message; p_class: MALFORMED | CODEC_ERROR | UNSUPPORTED | INFRA
--             p_treatment: dead | retry | wait, see error_class
--             p_sqlstate: may be null; p_reason; p_now
-- Returns   : outcome with "attempts" and "action": next | retry | stop (two heads in a row exhausted by one SQLSTATE)
-- Errors    : none
-- Locks     : none
-- Reads     : proc_state, setting
-- Writes    : proc_state
-- Called by : record_failure, acquire_writer
-- Sources   : D14, D35, US-03/4, US-03/5
-- Oracle    : msgx_pipeline.book_failure
-- ================================================================================================
create or replace function _book_failure(
    p_message_id bigint, p_class text, p_treatment text, p_sqlstate text, p_reason text, p_now timestamptz
) returns jsonb
language plpgsql volatile
as $$
declare
    v_row      proc_state%rowtype;
    v_charged  integer := case when p_treatment = 'wait' then 0 else 1 end;
    v_attempts integer;
    v_next     timestamptz;
    v_result   jsonb := jsonb_strip_nulls(jsonb_build_object('sqlstate', p_sqlstate));
    v_before   proc_state%rowtype;
begin
    select s.* into v_row from proc_state s where s.message_id = p_message_id;
    v_attempts := v_row.attempts + v_charged;
    update proc_state
       set attempts = v_attempts, last_error_class = p_class
     where message_id = p_message_id;
    if p_treatment = 'dead' then
        return _finish_message(p_message_id, null, null, null, 'DEAD', p_class, p_reason, null, v_result, p_now)
            || jsonb_build_object('attempts', v_attempts, 'action', 'next');
    end if;
    if v_charged = 1 and v_attempts >= _get_setting(case p_class when 'UNSUPPORTED' then 'pipeline.unsupported_attempts' else 'pipeline.max_attempts' end)::integer then
        select s.* into v_before from proc_state s where s.message_id < p_message_id order by s.message_id desc limit 1;
        return _finish_message(p_message_id, null, null, null, 'DEAD', 'EXHAUSTED', p_reason, null, v_result, p_now)
            -- The same unexpected error twice in a row is the system's fault, not the messages'.
            || jsonb_build_object('attempts', v_attempts, 'last_error_class', p_class, 'action',
                   case when p_class = 'INFRA' and p_sqlstate is not null and v_before.error_class = 'EXHAUSTED'
                             and v_before.last_error_class = 'INFRA' and v_before.result ->> 'sqlstate' = p_sqlstate
                        then 'stop' else 'next' end);
    end if;
    v_next := p_now + _backoff(_get_setting('pipeline.backoff_base')::numeric, _get_setting('pipeline.backoff_cap')::numeric, v_attempts - 1);
    update proc_state
       set status = 'FAILED', error_class = p_class, reason = left(p_reason, 4000), next_attempt_at = v_next, result = v_result
     where message_id = p_message_id;
    return jsonb_build_object(
        'message_id', p_message_id, 'status', 'FAILED', 'error_class', p_class, 'reason', left(p_reason, 4000),
        'attempts', v_attempts, 'charged', v_charged = 1, 'next_attempt_at', v_next, 'action', 'retry');
end;
$$;

comment on function _book_failure(bigint, text, text, text, text, timestamptz) is 'Books a failed attempt on a PENDING or FAILED message (D14).';
revoke all on function _book_failure(bigint, text, text, text, text, timestamptz) from public;
