-- ================================================================================================
-- start_inbox
-- Purpose   : Say once where the reading of a mailbox starts; a cursor that is there stays as it is.
-- Params    : p_source: mailbox; p_start_at: first id to read
--             p_now: clock, null = clock_timestamp()
-- Returns   : true when the cursor is new
-- Errors    : MX001 no source or start; MX314 the schema holds messages of another source
-- Locks     : pipeline_lock row FLIGHT_SCHD_WRITER
-- Reads     : proc_state
-- Writes    : inbox_cursor
-- Called by : driver (poller)
-- Sources   : US-01/3, D38
-- Oracle    : msgx_inbox.start_inbox
-- ================================================================================================
create or replace function start_inbox(p_source text, p_start_at bigint, p_now timestamptz) returns boolean
language plpgsql volatile security definer
as $$
begin
    perform _resolve_now(p_now);
    if coalesce(p_source, '') in ('', 'replay') or p_start_at is null or p_start_at < 0 then
        perform _raise('MX001', 'start_inbox needs the name of a mailbox, which is not replay, and a first id from 0', null);
    end if;
    perform _lock_row();
    if exists (select 1 from inbox_cursor c where c.source = p_source) then
        return false;
    end if;
    -- The ids of two sources would meet in one queue.
    if exists (select 1 from inbox_cursor) or exists (select 1 from proc_state s where s.source <> p_source) then
        perform _raise('MX314', format('this schema holds messages of another source than mailbox %s; use a schema of its own', p_source), null);
    end if;
    insert into inbox_cursor (source, watermark, first_id) values (p_source, greatest(p_start_at, 1) - 1, greatest(p_start_at, 1));
    return true;
end;
$$;

comment on function start_inbox(text, bigint, timestamptz) is 'Creates the cursor of a mailbox at its first start (D38); MX314 in a schema of another source.';
revoke all on function start_inbox(text, bigint, timestamptz) from public;
grant execute on function start_inbox(text, bigint, timestamptz) to :"driver";
