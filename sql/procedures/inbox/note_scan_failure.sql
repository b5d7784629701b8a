-- ================================================================================================
-- note_scan_failure
-- Purpose   : Count a scan of the mailbox that failed.
-- Params    : p_source: mailbox
--             p_now: clock, null = clock_timestamp()
-- Returns   : failures in a row; null without a cursor
-- Errors    : none
-- Locks     : none
-- Reads     : none
-- Writes    : inbox_cursor
-- Called by : driver (poller)
-- Sources   : US-01/4
-- Oracle    : msgx_inbox.note_scan_failure
-- ================================================================================================
create or replace function note_scan_failure(p_source text, p_now timestamptz) returns integer
language plpgsql volatile security definer
as $$
declare
    v_failures integer;
begin
    perform _resolve_now(p_now);
    update inbox_cursor c set failures = c.failures + 1 where c.source = p_source returning c.failures into v_failures;
    return v_failures;
end;
$$;

comment on function note_scan_failure(text, timestamptz) is 'Counts failed scans in a row; the next good scan sets them to 0 (US-01/4).';
revoke all on function note_scan_failure(text, timestamptz) from public;
grant execute on function note_scan_failure(text, timestamptz) to :"driver";
