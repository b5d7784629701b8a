-- ================================================================================================
-- _plan_for_sets
-- Purpose   : Undo, for many records, what process_message fixes for single flights; its settings return when it ends.
-- Params    : p_records: records of the message
-- Returns   : nothing
-- Errors    : none
-- Locks     : none
-- Reads     : none
-- Writes    : none
-- Called by : _apply_adft, _apply_flop, _apply_fdel
-- Sources   : docs/concepts.md
-- Oracle    : none (hints are not needed there)
-- ================================================================================================
create or replace function _plan_for_sets(p_records integer) returns void
language plpgsql volatile
as $$
begin
    if p_records > 50 then
        perform set_config('plan_cache_mode', 'force_custom_plan', true),
                set_config('enable_seqscan', 'on', true),
                set_config('enable_hashjoin', 'on', true),
                set_config('enable_mergejoin', 'on', true);
    end if;
end;
$$;

comment on function _plan_for_sets(integer) is 'Lets the planner fit a statement to a larger set, to the end of process_message.';
revoke all on function _plan_for_sets(integer) from public;
