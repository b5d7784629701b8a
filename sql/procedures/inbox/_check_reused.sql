-- ================================================================================================
-- _check_reused
-- Purpose   : Notice ids of the mailbox that stand for another message than before.
-- Params    : p_source: mailbox; p_offset: its id_offset
--             p_ids: mailbox ids; p_payloads: their bytes, null = not compared; p_received: local receive times, null elements are not compared
-- Returns   : nothing
-- Errors    : MX313
-- Locks     : none
-- Reads     : proc_state, setting
-- Writes    : none
-- Called by : _take_rows, rescan_inbox
-- Sources   : D38
-- Oracle    : msgx_inbox.check_reused
-- ================================================================================================
create or replace function _check_reused(p_source text, p_offset bigint, p_ids bigint[], p_payloads bytea[], p_received timestamp[]) returns void
language plpgsql stable
as $$
declare
    v_zone text := _get_setting('airport.time_zone');
    v_id   bigint;
begin
    select min(m.id) into v_id
      from unnest(p_ids, p_payloads, p_received) as m (id, payload, received)
      join proc_state s on s.message_id = m.id + p_offset
     where s.source <> p_source or s.raw_hash <> sha256(m.payload)
        -- Without a receive time in the mailbox the instant of taking it is stored, which compares with nothing.
        or (m.received at time zone v_zone <> s.received_at and s.received_at <> s.enqueued_at);
    if v_id is not null then
        perform _raise('MX313',
            format('id %s of mailbox %s stands for another message than before; the mailbox was restored or numbered anew, reading it stops', v_id, p_source),
            jsonb_build_object('source', p_source, 'mailbox_id', v_id));
    end if;
end;
$$;

comment on function _check_reused(text, bigint, bigint[], bytea[], timestamp[]) is 'MX313 when a known mailbox id comes with other bytes or another receive time (D38).';
revoke all on function _check_reused(text, bigint, bigint[], bytea[], timestamp[]) from public;
