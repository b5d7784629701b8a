-- ================================================================================================
-- _build_notice
-- Purpose   : One form of notice for all kinds.
-- Params    : p_message_id, p_meta: the message; p_flid: the flight; p_changed: keys carried, sorted
-- Returns   : JSON object
-- Errors    : none
-- Locks     : none
-- Reads     : none
-- Writes    : none
-- Called by : _apply_adft, _apply_flop, _apply_fdel, _update_mains
-- Sources   : contract 5, D37
-- Oracle    : msgx_outbox.build_notice
-- ================================================================================================
create or replace function _build_notice(p_message_id bigint, p_meta jsonb, p_flid text, p_changed text[]) returns jsonb
language plpgsql immutable
as $$
begin
    -- An empty DTTM is none (D11).
    return jsonb_strip_nulls(jsonb_build_object(
        'FLID', p_flid, 'MESSAGE_ID', p_message_id, 'SNDR', p_meta -> 'SNDR', 'TYPE', p_meta -> 'TYPE',
        'STYP', p_meta -> 'STYP', 'SEQN', p_meta -> 'SEQN', 'DTTM', nullif(p_meta ->> 'DTTM', ''), 'CHANGED', to_jsonb(p_changed)));
end;
$$;

comment on function _build_notice(bigint, jsonb, text, text[]) is 'Body of a NOTICE: which message changed which keys of a flight; no state (FS-8-7).';
revoke all on function _build_notice(bigint, jsonb, text, text[]) from public;
