-- ================================================================================================
-- _identity_of
-- Purpose   : Build the identity key.
-- Params    : p_meta: META of the command
-- Returns   : key, or null when SNDR, TYPE, STYP or SEQN do not make one; 000123 equals 123
-- Errors    : none
-- Locks     : none
-- Reads     : setting
-- Writes    : none
-- Called by : process_message, record_failure
-- Sources   : FS-4.1-5, US-03/3, D16
-- Oracle    : msgx_pipeline.identity_of
-- ================================================================================================
create or replace function _identity_of(p_meta jsonb) returns text
language plpgsql stable
as $$
begin
    if coalesce(p_meta ->> 'SNDR', '') = '' or coalesce(p_meta ->> 'TYPE', '') = '' or coalesce(p_meta ->> 'STYP', '') = ''
       or coalesce(p_meta ->> 'SEQN', '') !~ '^[0-9]{1,18}$'
       or greatest(char_length(p_meta ->> 'SNDR'), char_length(p_meta ->> 'TYPE'), char_length(p_meta ->> 'STYP')) > 200
    then
        return null;
    end if;
    -- A separator inside a value is escaped, so that two different identities never look alike.
    return replace(replace(p_meta ->> 'SNDR', E'\\', E'\\\\'), '|', E'\\|')
        || '|' || replace(replace(p_meta ->> 'TYPE', E'\\', E'\\\\'), '|', E'\\|')
        || '|' || replace(replace(p_meta ->> 'STYP', E'\\', E'\\\\'), '|', E'\\|')
        || '|' || (p_meta ->> 'SEQN')::bigint
        || case when _get_setting('identity.include_day_boundary') = 'yes'
                then '|' || coalesce(left(_full_dttm(p_meta ->> 'DTTM'), 8), '') else '' end;
end;
$$;

comment on function _identity_of(jsonb) is 'Business identity of a message: sender|type|subtype|sequence, or null without one (FS-4.1-5).';
revoke all on function _identity_of(jsonb) from public;
