-- ================================================================================================
-- enqueue_inbox
-- Purpose   : Take rows of a mailbox into the queue and move the watermark, in one transaction.
-- Params    : p_source: mailbox
--             p_after: watermark the rows were read above; p_upto: id up to which they are all
--             p_ids: mailbox ids, all above p_after and up to p_upto, each once
--             p_payloads, p_encodings: as for enqueue_messages
--             p_received: receive times in the airport's local time, null elements = p_now
--             p_now: clock, null = clock_timestamp()
-- Returns   : {"new", "known"}
-- Errors    : MX001 ids outside the interval; MX203 the watermark is not p_after; MX312 no cursor; MX313 an id stands for another message
-- Locks     : pipeline_lock row FLIGHT_SCHD_WRITER
-- Reads     : none
-- Writes    : inbox_cursor, and what _take_rows writes
-- Called by : driver (poller)
-- Sources   : US-01/2, US-01/3, D38
-- Oracle    : msgx_inbox.enqueue_inbox
-- ================================================================================================
create or replace function enqueue_inbox(
    p_source text, p_after bigint, p_upto bigint, p_ids bigint[], p_payloads bytea[], p_encodings text[], p_received timestamp[], p_now timestamptz
) returns jsonb
language plpgsql volatile security definer
as $$
declare
    v_now    timestamptz := _resolve_now(p_now);
    v_offset bigint;
begin
    if p_after is null or p_upto is null or p_upto < p_after or p_ids is null
       or cardinality(p_ids) is distinct from cardinality(p_received)
       or exists (select 1 from unnest(p_ids) i where i is null or i <= p_after or i > p_upto)
    then
        perform _raise('MX001', 'enqueue_inbox needs ids above p_after and up to p_upto, and a receive time or null for each', null);
    end if;
    perform _lock_row();
    update inbox_cursor c set watermark = p_upto where c.source = p_source and c.watermark = p_after returning c.id_offset into v_offset;
    if not found then
        perform _refuse_scan(p_source, p_after);
    end if;
    return _take_rows(p_source, v_offset, p_ids, p_payloads, p_encodings, p_received, p_after, v_now);
end;
$$;

comment on function enqueue_inbox(text, bigint, bigint, bigint[], bytea[], text[], timestamp[], timestamptz) is 'Takes mailbox rows and moves the watermark by compare-and-swap, in one transaction (US-01/3).';
revoke all on function enqueue_inbox(text, bigint, bigint, bigint[], bytea[], text[], timestamp[], timestamptz) from public;
grant execute on function enqueue_inbox(text, bigint, bigint, bigint[], bytea[], text[], timestamp[], timestamptz) to :"driver";
