-- ================================================================================================
-- next_message
-- Purpose   : Show what the pump has to work on.
-- Params    : p_now: clock, null = clock_timestamp()
-- Returns   : one row, or none when the queue is empty; due = the backoff has passed
-- Errors    : none
-- Locks     : none
-- Reads     : proc_state, message_raw, pipeline_lock, setting
-- Writes    : none
-- Called by : driver (pump), DBA by hand
-- Sources   : FS-4.1-1, US-03/1, D14
-- Oracle    : msgx_pipeline.next_message
-- ================================================================================================
create or replace function next_message(p_now timestamptz)
returns table (message_id bigint, status varchar, attempts integer, due boolean, next_attempt_at timestamptz, payload bytea, encoding varchar)
language plpgsql volatile security definer
as $$
#variable_conflict use_column
declare
    v_now timestamptz := _resolve_now(p_now);
begin
    return query
    select s.message_id, s.status, s.attempts,
           -- A clock that went back never strands a message: due beyond now + cap counts as due (D14).
           s.next_attempt_at is null or s.next_attempt_at <= v_now
               or s.next_attempt_at > v_now + make_interval(secs => _get_setting('pipeline.backoff_cap')::integer),
           s.next_attempt_at, r.payload, r.encoding
      from (select h.* from proc_state h
             where h.status in ('PENDING', 'FAILED')
               and h.message_id >= coalesce((select l.queue_floor from pipeline_lock l where l.name = 'FLIGHT_SCHD_WRITER'), 0)
             order by h.message_id limit 1) s
      -- A message whose original is gone must not hide: it comes back without bytes.
      left join message_raw r on r.message_id = s.message_id;
end;
$$;

comment on function next_message(timestamptz) is 'The head of the queue with its bytes: smallest id in PENDING or FAILED, due or not (FS-4.1-1).';
revoke all on function next_message(timestamptz) from public;
grant execute on function next_message(timestamptz) to :"driver";
