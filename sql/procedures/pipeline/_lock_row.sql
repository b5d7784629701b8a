-- ================================================================================================
-- _lock_row
-- Purpose   : First step of everything that writes what process_message reads (FS-3.2-5).
-- Params    : none
-- Returns   : the row, locked to the end of the transaction
-- Errors    : MX001 not read committed; MX902 the row is missing
-- Locks     : pipeline_lock row FLIGHT_SCHD_WRITER
-- Reads     : pipeline_lock
-- Writes    : none
-- Called by : _lock_writer, acquire_writer, acknowledge_state_loss, enqueue_messages, set_setting, start_inbox, enqueue_inbox,
--             enqueue_late, republish_flights
-- Sources   : FS-3.2-5
-- Oracle    : msgx_pipeline.lock_row
-- ================================================================================================
create or replace function _lock_row() returns pipeline_lock
language plpgsql volatile
as $$
declare
    v_lock pipeline_lock%rowtype;
begin
    perform _require_read_committed();
    select l.* into v_lock from pipeline_lock l where l.name = 'FLIGHT_SCHD_WRITER' for update;
    if not found then
        perform _raise('MX902', 'pipeline_lock has no row FLIGHT_SCHD_WRITER; insert it as sql/schema/60_seed.sql does', null);
    end if;
    return v_lock;
end;
$$;

comment on function _lock_row() is 'Locks the writer row; MX902 when it is missing.';
revoke all on function _lock_row() from public;
