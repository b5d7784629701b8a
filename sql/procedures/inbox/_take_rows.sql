-- ================================================================================================
-- _take_rows
-- Purpose   : Put rows of a mailbox into the queue under their message ids.
-- Params    : p_source: mailbox; p_offset: its id_offset
--             p_ids: mailbox ids, each once; p_payloads, p_encodings: as for enqueue_messages
--             p_received: receive times in the airport's local time, null elements = p_now
--             p_above: watermark they were read above, null = they were found behind it; p_now: clock
-- Returns   : {"new", "known"}
-- Errors    : MX313 an id stands for another message
-- Locks     : none
-- Reads     : setting
-- Writes    : inbox_gap, proc_state, and what enqueue_messages writes
-- Called by : enqueue_inbox, enqueue_late
-- Sources   : US-01/2, D29, D38
-- Oracle    : msgx_inbox.take_rows
-- ================================================================================================
create or replace function _take_rows(
    p_source text, p_offset bigint, p_ids bigint[], p_payloads bytea[], p_encodings text[], p_received timestamp[], p_above bigint, p_now timestamptz
) returns jsonb
language plpgsql volatile
as $$
declare
    v_zone     text := _get_setting('airport.time_zone');
    v_ids      bigint[];
    v_received timestamptz[];
    v_result   jsonb;
begin
    perform _check_reused(p_source, p_offset, p_ids, p_payloads, p_received);
    select coalesce(array_agg(m.id + p_offset order by m.ord), '{}'), coalesce(array_agg(m.received at time zone v_zone order by m.ord), '{}')
      into v_ids, v_received
      from unnest(p_ids, p_received) with ordinality as m (id, received, ord);
    v_result := enqueue_messages(p_source, v_ids, p_payloads, p_encodings, v_received, p_now);
    -- What is known already came in its order, or is marked already.
    update proc_state s set mailbox_id = s.message_id - p_offset, late = p_above is null
     where s.message_id = any (v_ids) and s.mailbox_id is null;
    update inbox_gap g set filled_at = p_now
     where g.source = p_source and g.filled_at is null and g.first_id > coalesce(p_above, 0)
       and exists (select 1 from unnest(p_ids) i where i between g.first_id and g.last_id);
    return v_result;
end;
$$;

comment on function _take_rows(text, bigint, bigint[], bytea[], text[], timestamp[], bigint, timestamptz) is 'Queues mailbox rows, remembers their mailbox ids and closes the holes that they fill (US-01/2).';
revoke all on function _take_rows(text, bigint, bigint[], bytea[], text[], timestamp[], bigint, timestamptz) from public;
