-- ================================================================================================
-- _check_overtaken
-- Purpose   : Refuse a late message that meets what a later one has written: it cannot be passed off as in order.
-- Params    : p_message_id: message at hand
--             p_flids: flights it is about to write or delete; p_fday: day whose plan it is about to replace, or null
-- Returns   : nothing; does nothing for a message that is not late
-- Errors    : MX105
-- Locks     : none
-- Reads     : proc_state, setting, flight_schd, flight_tombstone, schd_gen
-- Writes    : none
-- Called by : _write_flights, _delete_flights, _advance_schd_gen
-- Sources   : D29, US-01/5
-- Oracle    : msgx_inbox.check_overtaken
-- ================================================================================================
create or replace function _check_overtaken(p_message_id bigint, p_flids text[], p_fday date) returns void
language plpgsql stable
as $$
declare
    v_what  text;
    v_later bigint;
begin
    perform 1 from proc_state s where s.message_id = p_message_id and s.late;
    if not found or _get_setting('inbox.late_row') = 'process' then
        return;
    end if;
    select x.what, x.later into v_what, v_later
      from (select 'flight ' || f.flid as what, f.high_message_id as later
              from flight_schd f where f.flid = any (p_flids) and f.high_message_id > p_message_id
            union all
            select 'deleted flight ' || t.flid, t.message_id
              from flight_tombstone t where t.flid = any (p_flids) and t.message_id > p_message_id
            union all
            select 'plan of ' || g.fday, g.last_message_id
              from schd_gen g where g.fday = p_fday and g.last_message_id > p_message_id) x
     order by x.what collate "C" limit 1;
    if v_later is not null then
        perform _raise('MX105',
            format('late-overtaken: message %s came late, %s was written by message %s already (inbox.late_row = guard)', p_message_id, v_what, v_later),
            jsonb_build_object('message_id', p_message_id, 'later', v_later));
    end if;
end;
$$;

comment on function _check_overtaken(bigint, text[], date) is 'MX105 when a late message touches what a later one has written (D29).';
revoke all on function _check_overtaken(bigint, text[], date) from public;
