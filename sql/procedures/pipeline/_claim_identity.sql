-- ================================================================================================
-- _claim_identity
-- Purpose   : Recognise duplicates by business identity.
-- Params    : p_message_id, p_key, p_hash (content without META), p_dttm (full or null), p_now
-- Returns   : null = this message holds the identity; else {"reason", "holder", "status"}
-- Errors    : none
-- Locks     : none
-- Reads     : message_identity, proc_state, setting
-- Writes    : message_identity
-- Called by : process_message, record_failure
-- Sources   : FS-4.1-5, US-03/3, D15, D31
-- Oracle    : msgx_pipeline.claim_identity
-- ================================================================================================
create or replace function _claim_identity(
    p_message_id bigint, p_key text, p_hash bytea, p_dttm text, p_now timestamptz
) returns jsonb
language plpgsql volatile
as $$
declare
    v_held   message_identity%rowtype;
    v_status text;
    v_reason text;
    v_rule   text;
begin
    insert into message_identity (identity_key, message_id, payload_hash, dttm, bound_at)
    values (p_key, p_message_id, p_hash, p_dttm, p_now)
    on conflict (identity_key) do nothing;
    if found then
        return null;
    end if;
    select i.* into v_held from message_identity i where i.identity_key = p_key;
    if v_held.message_id = p_message_id then
        -- record_failure may have bound it before the body could be read.
        update message_identity
           set payload_hash = p_hash, dttm = p_dttm
         where identity_key = p_key and (payload_hash is distinct from p_hash or dttm is distinct from p_dttm);
        return null;
    end if;
    select s.status into v_status from proc_state s where s.message_id = v_held.message_id;
    if v_status = 'DEAD' then
        v_rule := _get_setting('identity.of_dead');
        v_reason := case when v_rule = 'skip' then 'duplicate-of-dead' end;
    elsif v_held.payload_hash is distinct from p_hash then
        v_rule := _get_setting('identity.conflict');
        -- Only a later DTTM proves the newer content; without one the older binding stands.
        v_reason := case when v_rule = 'accept_newer' and p_dttm > v_held.dttm then null else 'identity-reused' end;
    else
        v_reason := 'duplicate';
    end if;
    if v_reason is null then
        update message_identity
           set message_id = p_message_id, payload_hash = p_hash, dttm = p_dttm, bound_at = p_now
         where identity_key = p_key;
        return null;
    end if;
    return jsonb_build_object(
        'reason', v_reason,
        'holder', v_held.message_id,
        'status', case when v_reason = 'identity-reused' and v_rule = 'dead' then 'DEAD' else 'SKIPPED' end);
end;
$$;

comment on function _claim_identity(bigint, text, bytea, text, timestamptz) is 'Binds the identity to the message, or says why it cannot (FS-4.1-5, D15, D31).';
revoke all on function _claim_identity(bigint, text, bytea, text, timestamptz) from public;
