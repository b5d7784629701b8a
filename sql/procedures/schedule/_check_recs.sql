-- ================================================================================================
-- _check_recs
-- Purpose   : A partial package must not delete.
-- Params    : p_message_id: for the reason; p_command: the package
-- Returns   : true when RECS differs and the setting only warns
-- Errors    : MX101 RECS missing, no number, different
-- Locks     : none
-- Reads     : setting
-- Writes    : none
-- Called by : _apply_snapshot, _apply_adft
-- Sources   : D7, FS-4.2-11
-- Oracle    : msgx_schedule.check_recs
-- ================================================================================================
create or replace function _check_recs(p_message_id bigint, p_command jsonb) returns boolean
language plpgsql stable
as $$
declare
    v_recs  text := p_command -> 'schedule' ->> 'RECS';
    v_count integer;
begin
    if jsonb_typeof(p_command -> 'flights') is distinct from 'array' then
        perform _refuse('MX101', p_message_id, null, 'SCHD', 'the command has no array of flights');
    end if;
    if coalesce(v_recs, '') !~ '^[0-9]{1,6}$' then
        perform _refuse('MX101', p_message_id, null, 'RECS', 'RECS is required and is a number');
    end if;
    v_count := jsonb_array_length(p_command -> 'flights');
    if v_recs::integer <> v_count and _get_setting('snapshot.recs_mismatch') = 'reject' then
        perform _refuse('MX101', p_message_id, null, 'RECS',
            format('RECS differs from the %s records received (snapshot.recs_mismatch = reject)', v_count));
    end if;
    return v_recs::integer <> v_count;
end;
$$;

comment on function _check_recs(bigint, jsonb) is 'RECS against the records received (D7), and no FLID twice in a package (D8).';
revoke all on function _check_recs(bigint, jsonb) from public;
