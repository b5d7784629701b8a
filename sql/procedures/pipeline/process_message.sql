-- ================================================================================================
-- process_message
-- Purpose   : Merge one message: ignore, identity, route, state, ledger, outbox, terminal status and backfill intent, all or nothing.
-- Params    : p_message_id: the head of the queue
--             p_command: see docs/reference/contract.md 2; {"meta", "error"} when the body could not be decoded
--             p_now: clock, null = clock_timestamp()
-- Returns   : {"message_id", "status", "reason"?, "duplicate_of"?, "result"?, "action"? (stop)}; {"already": true} when it was terminal
-- Errors    : MX001, MX002 caller; MX101-MX104 content; MX201 compare-and-swap; MX401 not the writer; MX501 not the head; MX901 state lost.
--             After an error roll back, then call record_failure.
-- Locks     : pipeline_lock row FLIGHT_SCHD_WRITER
-- Reads     : proc_state, ignore_rule, flop_kind, setting and what the applying routines read
-- Writes    : proc_state, message_identity and what the applying routines write
-- Called by : driver (pump), DBA by hand
-- Sources   : FS-4-4, FS-4.1, US-03, US-04, D36, D40
-- Oracle    : msgx_pipeline.process_message
-- ================================================================================================
create or replace function process_message(p_message_id bigint, p_command jsonb, p_now timestamptz) returns jsonb
language plpgsql volatile security definer
-- Every access is by key: one fixed plan for each statement, whatever the tables held when it was made.
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_now     timestamptz := _resolve_now(p_now);
    v_meta    jsonb := p_command -> 'meta';
    v_type    text := v_meta ->> 'TYPE';
    v_styp    text := v_meta ->> 'STYP';
    v_dttm    text := _full_dttm(v_meta ->> 'DTTM');
    v_status  text;
    v_ignored text;
    v_key     text;
    v_hash    bytea;
    v_held    jsonb;
    v_run     integer;
    v_kind    flop_kind%rowtype;
    v_result  jsonb;
begin
    perform _lock_writer();
    select s.status into v_status from proc_state s where s.message_id = p_message_id;
    if v_status is null then
        perform _raise('MX002', format('message %s is not in the queue; enqueue it first', p_message_id), null);
    end if;
    if v_status not in ('PENDING', 'FAILED') then
        return jsonb_build_object('message_id', p_message_id, 'status', v_status, 'already', true);
    end if;
    perform _require_head(p_message_id);

    if coalesce(v_type, '') = '' or coalesce(v_styp, '') = '' then
        perform _refuse('MX101', p_message_id, null, 'META', 'TYPE and STYP are required');
    end if;
    v_ignored := _match_ignore(v_type, v_styp);
    if v_ignored is not null then
        return _finish_message(p_message_id, v_meta, null, null, 'SKIPPED', null, 'ignored:' || v_ignored, null, null, v_now);
    end if;
    if p_command ? 'error' then
        perform _raise(case when p_command -> 'error' -> 'capacity' = 'true' then 'MX102' else 'MX101' end,
                       'message ' || p_message_id || ': ' || coalesce(p_command -> 'error' ->> 'reason', 'the body could not be decoded'), null);
    end if;

    v_key := _identity_of(v_meta);
    if v_key is null then
        perform _refuse(
            case when greatest(char_length(v_meta ->> 'SNDR'), char_length(v_type), char_length(v_styp)) > 200 then 'MX102' else 'MX101' end,
            p_message_id, null, 'META', 'SNDR, TYPE and STYP (1-200 characters) and SEQN (1-18 digits) are required');
    end if;
    v_hash := _content_hash(p_command);
    v_held := _claim_identity(p_message_id, v_key, v_hash, v_dttm, v_now);
    if v_held is not null then
        if v_held ->> 'reason' = 'identity-reused' then
            select coalesce((s.result ->> 'reused_run')::integer, 0) + 1 into v_run
              from proc_state s where s.message_id < p_message_id order by s.message_id desc limit 1;
            v_result := jsonb_build_object('reused_run', coalesce(v_run, 1));
        end if;
        return _finish_message(p_message_id, v_meta, v_key, v_hash, v_held ->> 'status',
                   case when v_held ->> 'status' = 'DEAD' then 'MALFORMED' end,
                   format('%s: message %s holds the identity of message %s', v_held ->> 'reason', v_held ->> 'holder', p_message_id),
                   (v_held ->> 'holder')::bigint, v_result, v_now)
            -- Twenty in a row mean that the sender numbers anew (D15): a person has to look.
            || case when v_run % 20 = 0 and v_held ->> 'status' = 'SKIPPED' then jsonb_build_object('action', 'stop') else '{}'::jsonb end;
    end if;

    if v_type = 'SCHD' and v_styp in ('DNLD', 'RESP') then
        if v_styp = 'RESP' and _get_setting('request.resp_guard') = 'strict' then
            return _finish_message(p_message_id, v_meta, v_key, v_hash, 'SKIPPED', null,
                       format('resp-unmatched: message %s answers no open request (request.resp_guard = strict)', p_message_id), null, null, v_now);
        end if;
        v_result := _apply_snapshot(p_message_id, p_command, v_dttm, v_now);
    elsif v_type = 'SCHD' and v_styp = 'ADFT' then
        v_result := _apply_adft(p_message_id, p_command, v_dttm, v_now);
    elsif v_type = 'FLOP' or v_type = 'FDEL' then
        select k.* into v_kind from flop_kind k where k.styp = case v_type when 'FDEL' then 'FDEL' else v_styp end and k.enabled;
        if not found then
            perform _refuse('MX103', p_message_id, null, null,
                format('kind %s/%s is unknown or disabled; enable it in flop_kind and have it sent again under a new SEQN', left(v_type, 20), left(v_styp, 20)));
        end if;
        if v_kind.styp = 'FDEL' then
            v_result := _apply_fdel(p_message_id, p_command, v_now);
        else
            v_result := _apply_flop(p_message_id, p_command, v_kind, v_dttm, v_now);
        end if;
    else
        perform _refuse('MX103', p_message_id, null, null,
            format('kind %s/%s is not supported', left(v_type, 20), left(v_styp, 20)));
    end if;
    return _finish_message(p_message_id, v_meta, v_key, v_hash, 'SUCCEEDED', null, null, null, v_result, v_now);
end;
$$;

comment on function process_message(bigint, jsonb, timestamptz) is 'Processes the head of the queue: one message, one transaction (US-03/6).';
revoke all on function process_message(bigint, jsonb, timestamptz) from public;
grant execute on function process_message(bigint, jsonb, timestamptz) to :"driver";
