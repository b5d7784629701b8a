-- ================================================================================================
-- _require_head
-- Purpose   : Keep strict order.
-- Params    : p_message_id: a PENDING or FAILED message
-- Returns   : nothing
-- Errors    : MX501 a smaller id is unfinished
-- Locks     : none
-- Reads     : proc_state, pipeline_lock
-- Writes    : none
-- Called by : process_message, record_failure
-- Sources   : FS-4.1-1, US-03/1, architecture invariant 3
-- Oracle    : msgx_pipeline.require_head
-- ================================================================================================
create or replace function _require_head(p_message_id bigint) returns void
language plpgsql stable
as $$
begin
    if exists (select 1 from proc_state s
                where s.status in ('PENDING', 'FAILED') and s.message_id < p_message_id
                  and s.message_id >= (select l.queue_floor from pipeline_lock l where l.name = 'FLIGHT_SCHD_WRITER'))
    then
        -- Not the caller's fault: a smaller id may have come after it asked for the head.
        perform _raise('MX501', format('message %s is not the head of the queue; nobody overtakes, ask next_message again', p_message_id), null);
    end if;
end;
$$;

comment on function _require_head(bigint) is 'Makes sure that the message is the head of the queue (MX501): nobody overtakes (FS-4.1-1).';
revoke all on function _require_head(bigint) from public;
