-- ================================================================================================
-- _require_read_committed
-- Purpose   : Refuse a transaction that would go on with what it saw before it waited for a lock.
-- Params    : none
-- Returns   : nothing
-- Errors    : MX001 another isolation level
-- Locks     : none
-- Reads     : none
-- Writes    : none
-- Called by : _lock_row, _take_target, _hold_target, redeliver_events
-- Sources   : FS-3.2-5, contract 4
-- Oracle    : none (Oracle reads by statement unless told otherwise)
-- ================================================================================================
create or replace function _require_read_committed() returns void
language plpgsql stable
as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        perform _raise('MX001', format('msgx needs transactions that are read committed, this one is %s; set default_transaction_isolation to read committed',
                                       current_setting('transaction_isolation')), null);
    end if;
end;
$$;

comment on function _require_read_committed() is 'MX001 unless the transaction is read committed: what is read after a lock must be newer than the lock.';
revoke all on function _require_read_committed() from public;
