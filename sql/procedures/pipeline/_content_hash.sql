-- ================================================================================================
-- _content_hash
-- Purpose   : Tell the same content from other content under one identity.
-- Params    : p_command: command as in contract 2
-- Returns   : 32 bytes, null for what is no object
-- Errors    : none
-- Locks     : none
-- Reads     : none
-- Writes    : none
-- Called by : process_message, record_failure
-- Sources   : D15
-- Oracle    : outside parity (11g)
-- ================================================================================================
create or replace function _content_hash(p_command jsonb) returns bytea
language plpgsql immutable
as $$
begin
    return case when jsonb_typeof(p_command) = 'object' then sha256(convert_to((p_command - 'meta' - 'error')::text, 'UTF8')) end;
end;
$$;

comment on function _content_hash(jsonb) is 'SHA-256 of a command without META and without the error of its decoding.';
revoke all on function _content_hash(jsonb) from public;
