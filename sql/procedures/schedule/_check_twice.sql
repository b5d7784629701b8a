-- ================================================================================================
-- _check_twice
-- Purpose   : Two records of one flight contradict each other.
-- Params    : p_message_id: for the reason; p_command: the package
-- Returns   : nothing
-- Errors    : MX101 FLID twice
-- Locks     : none
-- Reads     : none
-- Writes    : none
-- Called by : _apply_snapshot, _apply_adft
-- Sources   : D8, FS-4.2-11
-- Oracle    : msgx_schedule.check_twice
-- ================================================================================================
create or replace function _check_twice(p_message_id bigint, p_command jsonb) returns void
language plpgsql stable
as $$
declare
    v_flid text;
begin
    select min(d.flid collate "C") into v_flid
      from (select e.j ->> 'FLID' as flid from jsonb_array_elements(p_command -> 'flights') as e (j)
             group by 1 having count(*) > 1) d;
    if v_flid is not null then
        perform _refuse('MX101', p_message_id, v_flid, 'FLID', 'the flight stands twice in one package');
    end if;
end;
$$;

comment on function _check_twice(bigint, jsonb) is 'No FLID twice in a package (D8).';
revoke all on function _check_twice(bigint, jsonb) from public;
