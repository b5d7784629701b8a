-- ================================================================================================
-- _refuse_scan
-- Purpose   : Say why a watermark could not be used: no cursor, or another poller moved it.
-- Params    : p_source: mailbox; p_after: watermark that was expected
-- Returns   : nothing, it raises
-- Errors    : MX203, MX312
-- Locks     : none
-- Reads     : inbox_cursor
-- Writes    : none
-- Called by : scan_inbox, enqueue_inbox
-- Sources   : US-01/3
-- Oracle    : msgx_inbox.refuse_scan
-- ================================================================================================
create or replace function _refuse_scan(p_source text, p_after bigint) returns void
language plpgsql volatile
as $$
begin
    perform 1 from inbox_cursor c where c.source = p_source;
    if not found then
        perform _raise('MX312', format('mailbox %s has no cursor; its first start needs mailbox.start_at', coalesce(p_source, '')), null);
    end if;
    perform _raise('MX203', format('the watermark of mailbox %s is no longer %s; another one reads it, nothing was taken', p_source, p_after), null);
end;
$$;

comment on function _refuse_scan(text, bigint) is 'Raises MX312 without a cursor, else MX203: the watermark is another one.';
revoke all on function _refuse_scan(text, bigint) from public;
