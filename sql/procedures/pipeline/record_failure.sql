-- ================================================================================================
-- record_failure
-- Purpose   : Book the failure of the head in a transaction of its own.
-- Params    : p_message_id: the head of the queue
--             p_meta: META as far as it was read, or null
--             p_payload: the command without META, or null; binds the identity
--             p_sqlstate: SQLSTATE of the error, null when the driver itself refused
--             p_class: MALFORMED | CODEC_ERROR | UNSUPPORTED | INFRA, null = by SQLSTATE from error_class
--             p_reason: message, tag, FLID, rule; cleaned and cut to 4000
--             p_now: clock, null = clock_timestamp()
-- Returns   : {"status", "attempts", "action": next | retry | stop, …}; "already" when it was terminal
-- Errors    : MX001 class or SQLSTATE not recordable; MX002 unknown message; MX501 not the head; MX401, MX902
-- Locks     : pipeline_lock row FLIGHT_SCHD_WRITER
-- Reads     : proc_state, error_class, setting
-- Writes    : proc_state, message_identity
-- Called by : driver (pump)
-- Sources   : US-03/4, US-03/5, D14, D31
-- Oracle    : msgx_pipeline.record_failure
-- ================================================================================================
create or replace function record_failure(
    p_message_id bigint, p_meta jsonb, p_payload jsonb, p_sqlstate text, p_class text, p_reason text, p_now timestamptz
) returns jsonb
language plpgsql volatile security definer
as $$
declare
    v_now    timestamptz := _resolve_now(p_now);
    v_rule   error_class%rowtype;
    v_status text;
    v_key    text;
begin
    perform _lock_writer();
    select s.status into v_status from proc_state s where s.message_id = p_message_id;
    if v_status is null then
        perform _raise('MX002', format('message %s is not in the queue', p_message_id), null);
    end if;
    if v_status not in ('PENDING', 'FAILED') then
        return jsonb_build_object('message_id', p_message_id, 'status', v_status, 'action', 'next', 'already', true);
    end if;
    perform _require_head(p_message_id);
    if p_class is null then
        select e.* into v_rule from error_class e
         where coalesce(p_sqlstate, '') like e.sqlstate_prefix || '%'
         order by length(e.sqlstate_prefix) desc limit 1;
    else
        v_rule.error_class := p_class;
        v_rule.treatment := case p_class when 'MALFORMED' then 'dead' else 'retry' end;
    end if;
    if v_rule.error_class not in ('MALFORMED', 'CODEC_ERROR', 'UNSUPPORTED', 'INFRA') or v_rule.treatment = 'stop' then
        perform _raise('MX001', format('record_failure does not take class %s with SQLSTATE %s; stop the pump instead',
                                       coalesce(left(p_class, 20), 'null'), coalesce(left(p_sqlstate, 5), 'null')), null);
    end if;
    update proc_state
       set sndr = left(p_meta ->> 'SNDR', 200), type = left(p_meta ->> 'TYPE', 200), styp = left(p_meta ->> 'STYP', 200),
           seqn = left(p_meta ->> 'SEQN', 200), dttm = left(p_meta ->> 'DTTM', 200)
     where message_id = p_message_id and jsonb_typeof(p_meta) = 'object';
    -- The business transaction rolled its binding back; MALFORMED binds none (D31).
    v_key := case when v_rule.error_class <> 'MALFORMED' then _identity_of(p_meta) end;
    if v_key is not null then
        -- By the same rules as the transaction did: one that took over a DEAD one's identity still holds it.
        perform _claim_identity(p_message_id, v_key, _content_hash(p_payload), _full_dttm(p_meta ->> 'DTTM'), v_now);
        update proc_state set identity_key = v_key, payload_hash = _content_hash(p_payload) where message_id = p_message_id;
    end if;
    return _book_failure(p_message_id, v_rule.error_class, v_rule.treatment, left(p_sqlstate, 5),
        coalesce(nullif(regexp_replace(coalesce(p_reason, ''), E'[\\x01-\\x08\\x0b\\x0c\\x0e-\\x1f]', '', 'g'), ''), 'no reason given'), v_now);
end;
$$;

comment on function record_failure(bigint, jsonb, jsonb, text, text, text, timestamptz) is 'Records that a message failed, after its transaction was rolled back (US-03/4, D14, D31).';
revoke all on function record_failure(bigint, jsonb, jsonb, text, text, text, timestamptz) from public;
grant execute on function record_failure(bigint, jsonb, jsonb, text, text, text, timestamptz) to :"driver";
