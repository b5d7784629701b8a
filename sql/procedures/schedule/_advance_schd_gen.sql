-- ================================================================================================
-- _advance_schd_gen
-- Purpose   : Advance the ledger of a day.
-- Params    : p_fday: day; p_expected: version read before, null = no plan yet; p_message_id; p_recs; p_now
-- Returns   : new version, from 1
-- Errors    : MX105 overtaken; MX201 conflict
-- Locks     : none
-- Reads     : none
-- Writes    : schd_gen
-- Called by : _apply_snapshot
-- Sources   : FS-3.3-10, FS-4.2-14, FS-7-13
-- Oracle    : msgx_schedule.advance_schd_gen
-- ================================================================================================
create or replace function _advance_schd_gen(p_fday date, p_expected bigint, p_message_id bigint, p_recs integer, p_now timestamptz) returns bigint
language plpgsql volatile
as $$
declare
    v_version bigint;
begin
    perform _check_overtaken(p_message_id, null, p_fday);
    if p_expected is null then
        insert into schd_gen (fday, version, last_message_id, recs, applied_at)
        values (p_fday, 1, p_message_id, p_recs, p_now)
        on conflict (fday) do nothing
        returning version into v_version;
    else
        update schd_gen g
           set version = g.version + 1, last_message_id = p_message_id, recs = p_recs, applied_at = p_now
         where g.fday = p_fday and g.version = p_expected
        returning g.version into v_version;
    end if;
    if v_version is null then
        perform _raise('MX201', format('message %s: the plan version of day %s is no longer %s; nothing was written, the message is retried',
                                       p_message_id, p_fday, coalesce(p_expected::text, 'absent')), null);
    end if;
    return v_version;
end;
$$;

comment on function _advance_schd_gen(date, bigint, bigint, integer, timestamptz) is 'Compare-and-swap of the plan version of a day (FS-3.3-10); MX201 when it was not the expected one.';
revoke all on function _advance_schd_gen(date, bigint, bigint, integer, timestamptz) from public;
