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
-- Reads     : setting
-- Writes    : inbox_cursor, inbox_gap, proc_state, and what enqueue_messages writes
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
    v_now      timestamptz := _resolve_now(p_now);
    v_zone     text := _get_setting('airport.time_zone');
    v_offset   bigint;
    v_ids      bigint[];
    v_received timestamptz[];
    v_result   jsonb;
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
        perform 1 from inbox_cursor c where c.source = p_source;
        if not found then
            perform _raise('MX312', format('mailbox %s has no cursor; its first start needs mailbox.start_at', coalesce(p_source, '')), null);
        end if;
        perform _raise('MX203', format('the watermark of mailbox %s is no longer %s; another one reads it, nothing was taken', p_source, p_after), null);
    end if;
    perform _check_reused(p_source, v_offset, p_ids, p_payloads, p_received);
    select coalesce(array_agg(m.id + v_offset order by m.ord), '{}'), coalesce(array_agg(m.received at time zone v_zone order by m.ord), '{}')
      into v_ids, v_received
      from unnest(p_ids, p_received) with ordinality as m (id, received, ord);
    v_result := enqueue_messages(p_source, v_ids, p_payloads, p_encodings, v_received, v_now);
    update proc_state s set mailbox_id = s.message_id - v_offset where s.message_id = any (v_ids) and s.mailbox_id is null;
    update inbox_gap g set filled_at = v_now
     where g.source = p_source and g.filled_at is null and g.first_id > p_after and g.first_id <= p_upto
       and exists (select 1 from unnest(p_ids) i where i between g.first_id and g.last_id);
    return v_result;
end;
$$;

comment on function enqueue_inbox(text, bigint, bigint, bigint[], bytea[], text[], timestamp[], timestamptz) is 'Takes mailbox rows and moves the watermark by compare-and-swap, in one transaction (US-01/3).';
revoke all on function enqueue_inbox(text, bigint, bigint, bigint[], bytea[], text[], timestamp[], timestamptz) from public;
grant execute on function enqueue_inbox(text, bigint, bigint, bigint[], bytea[], text[], timestamp[], timestamptz) to :"driver";
