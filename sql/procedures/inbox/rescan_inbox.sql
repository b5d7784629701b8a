-- ================================================================================================
-- rescan_inbox
-- Purpose   : Compare a page of the mailbox behind the watermark with what was taken, whether or not that is marked yet.
-- Params    : p_source: mailbox
--             p_ids: mailbox ids at or below the watermark; p_received: their local receive times, null elements are not compared
--             p_next: first id of the next page, null = the round is over
--             p_now: clock, null = clock_timestamp()
-- Returns   : ids that were never taken, ascending
-- Errors    : MX001 arrays of different length; MX312 no cursor; MX313 an id stands for another message (progress is kept back too)
-- Locks     : none
-- Reads     : inbox_cursor, proc_state
-- Writes    : inbox_cursor
-- Called by : driver (poller)
-- Sources   : US-01/3, D38
-- Oracle    : msgx_inbox.rescan_inbox
-- ================================================================================================
create or replace function rescan_inbox(p_source text, p_ids bigint[], p_received timestamp[], p_next bigint, p_now timestamptz) returns bigint[]
language plpgsql volatile security definer
as $$
declare
    v_cursor inbox_cursor%rowtype;
begin
    perform _resolve_now(p_now);
    if p_ids is null or cardinality(p_ids) is distinct from cardinality(p_received) then
        perform _raise('MX001', 'rescan_inbox needs a receive time or null for each id', null);
    end if;
    update inbox_cursor c set rescan_from = p_next where c.source = p_source returning c.* into v_cursor;
    if not found then
        perform _raise('MX312', format('mailbox %s has no cursor; its first start needs mailbox.start_at', coalesce(p_source, '')), null);
    end if;
    perform _check_reused(p_source, v_cursor.id_offset, p_ids, null, p_received);
    return coalesce((select array_agg(i order by i) from unnest(p_ids) i
                      where i between v_cursor.first_id and v_cursor.watermark
                        and not exists (select 1 from proc_state s where s.message_id = i + v_cursor.id_offset)), '{}');
end;
$$;

comment on function rescan_inbox(text, bigint[], timestamp[], bigint, timestamptz) is 'Ids of a page behind the watermark that are not in the queue; keeps the progress (US-01/3).';
revoke all on function rescan_inbox(text, bigint[], timestamp[], bigint, timestamptz) from public;
grant execute on function rescan_inbox(text, bigint[], timestamp[], bigint, timestamptz) to :"driver";
