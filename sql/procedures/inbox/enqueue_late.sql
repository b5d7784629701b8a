-- ================================================================================================
-- enqueue_late
-- Purpose   : Take rows found behind the watermark into the queue, marked as late.
-- Params    : p_source: mailbox
--             p_ids: mailbox ids at or below the watermark, each once
--             p_payloads, p_encodings: as for enqueue_messages
--             p_received: receive times in the airport's local time, null elements = p_now
--             p_now: clock, null = clock_timestamp()
-- Returns   : {"new", "known"}
-- Errors    : MX001 ids above the watermark or below the start; MX312 no cursor; MX313 an id stands for another message
-- Locks     : pipeline_lock row FLIGHT_SCHD_WRITER
-- Reads     : inbox_cursor
-- Writes    : what _take_rows writes
-- Called by : driver (poller)
-- Sources   : US-01/3, US-01/5, D29
-- Oracle    : msgx_inbox.enqueue_late
-- ================================================================================================
create or replace function enqueue_late(
    p_source text, p_ids bigint[], p_payloads bytea[], p_encodings text[], p_received timestamp[], p_now timestamptz
) returns jsonb
language plpgsql volatile security definer
as $$
declare
    v_now    timestamptz := _resolve_now(p_now);
    v_cursor inbox_cursor%rowtype;
begin
    perform _lock_row();
    select c.* into v_cursor from inbox_cursor c where c.source = p_source;
    if not found then
        perform _raise('MX312', format('mailbox %s has no cursor; its first start needs mailbox.start_at', coalesce(p_source, '')), null);
    end if;
    if p_ids is null or cardinality(p_ids) is distinct from cardinality(p_received)
       or exists (select 1 from unnest(p_ids) i where i is null or i > v_cursor.watermark or i < v_cursor.first_id)
    then
        perform _raise('MX001', 'enqueue_late needs ids behind the watermark, and a receive time or null for each', null);
    end if;
    return _take_rows(p_source, v_cursor.id_offset, p_ids, p_payloads, p_encodings, p_received, null, v_now);
end;
$$;

comment on function enqueue_late(text, bigint[], bytea[], text[], timestamp[], timestamptz) is 'Takes rows that appeared behind the watermark; their messages are late (D29).';
revoke all on function enqueue_late(text, bigint[], bytea[], text[], timestamp[], timestamptz) from public;
grant execute on function enqueue_late(text, bigint[], bytea[], text[], timestamp[], timestamptz) to :"driver";
