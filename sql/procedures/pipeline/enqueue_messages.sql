-- ================================================================================================
-- enqueue_messages
-- Purpose   : Take messages into the queue, idempotent by id (US-01/2).
-- Params    : p_source: replay, or the name of a mailbox
--             p_ids: mailbox ids, ascending or not, each once
--             p_payloads: bytes as received
--             p_encodings: bytes | text, see message_raw.encoding
--             p_received_at: receive times, null or null elements = p_now
--             p_now: clock, null = clock_timestamp()
-- Returns   : {"new", "known"}
-- Errors    : MX001 arrays of different length, ids below 1 or twice, nulls, unknown encodings; MX202 same id, other bytes (nothing is taken)
-- Locks     : pipeline_lock row FLIGHT_SCHD_WRITER; delivery_target row when an id is below one that is here
-- Reads     : proc_state, delivery_target
-- Writes    : proc_state, message_raw, pipeline_lock and delivery_target (floors); wakes the pump
-- Called by : _take_rows, driver (replay), DBA by hand
-- Sources   : US-01/2, US-03/2, D20
-- Oracle    : msgx_pipeline.enqueue_message
-- ================================================================================================
create or replace function enqueue_messages(
    p_source      text,
    p_ids         bigint[],
    p_payloads    bytea[],
    p_encodings   text[],
    p_received_at timestamptz[],
    p_now         timestamptz
) returns jsonb
language plpgsql volatile security definer
as $$
declare
    v_now   timestamptz := _resolve_now(p_now);
    v_other bigint;
    v_new   bigint[];
    v_high  bigint;
begin
    if p_ids is null or cardinality(p_ids) is distinct from cardinality(p_payloads)
       or cardinality(p_ids) is distinct from cardinality(p_encodings)
       or (p_received_at is not null and cardinality(p_ids) is distinct from cardinality(p_received_at))
    then
        perform _raise('MX001', 'enqueue_messages needs arrays of one length', null);
    end if;
    if p_source is null or exists (
           select 1 from unnest(p_ids, p_payloads, p_encodings) as m (message_id, payload, encoding)
            where m.message_id is null or m.message_id < 1 or m.payload is null or coalesce(m.encoding, '') not in ('bytes', 'text'))
       or exists (select 1 from unnest(p_ids) m group by m having count(*) > 1)
    then
        perform _raise('MX001', 'enqueue_messages needs a source, ids from 1 each once, payloads, and encodings bytes or text', null);
    end if;
    perform _lock_row();
    select greatest(max(s.message_id), (select t.floor_id from delivery_target t where t.target = 'MAILBOX')) into v_high from proc_state s;
    with given as (
        select m.message_id, m.payload, m.encoding, coalesce(m.received_at, v_now) as received_at, sha256(m.payload) as raw_hash
          from unnest(p_ids, p_payloads, p_encodings, coalesce(p_received_at, array_fill(null::timestamptz, array[cardinality(p_ids)])))
               as m (message_id, payload, encoding, received_at)
    ), queued as (
        insert into proc_state (message_id, source, received_at, raw_hash, enqueued_at)
        select g.message_id, p_source, g.received_at, g.raw_hash, v_now from given g order by g.message_id
        on conflict (message_id) do nothing
        returning message_id
    ), stored as (
        insert into message_raw (message_id, payload, encoding, received_at)
        select g.message_id, g.payload, g.encoding, g.received_at
          from given g where exists (select 1 from queued q where q.message_id = g.message_id)
    )
    select array_agg(q.message_id order by q.message_id) into v_new from queued q;
    select min(m.message_id) into v_other
      from unnest(p_ids, p_payloads) as m (message_id, payload)
      join proc_state s on s.message_id = m.message_id
     where s.raw_hash <> sha256(m.payload);
    if v_other is not null then
        perform _raise('MX202',
            format('message %s is already here with other bytes; ids are never reused, so nothing of this call was taken', v_other),
            jsonb_build_object('message_id', v_other));
    end if;
    update pipeline_lock set queue_floor = v_new[1]
     where name = 'FLIGHT_SCHD_WRITER' and queue_floor > v_new[1];
    -- confirm_backfill moves this floor up, under the row's lock, never past the ids that it has seen.
    if v_new[1] <= v_high then
        perform 1 from delivery_target t where t.target = 'MAILBOX' for update;
        update delivery_target t set floor_id = v_new[1] where t.target = 'MAILBOX' and t.floor_id > v_new[1];
    end if;
    if v_new is not null then
        perform pg_notify(_queue_channel(), '');
    end if;
    return jsonb_build_object('new', coalesce(cardinality(v_new), 0), 'known', cardinality(p_ids) - coalesce(cardinality(v_new), 0));
end;
$$;

comment on function enqueue_messages(text, bigint[], bytea[], text[], timestamptz[], timestamptz) is 'Puts messages into the queue; the same id and bytes again is a no-op, other bytes are MX202.';
revoke all on function enqueue_messages(text, bigint[], bytea[], text[], timestamptz[], timestamptz) from public;
grant execute on function enqueue_messages(text, bigint[], bytea[], text[], timestamptz[], timestamptz) to :"driver";
