-- ================================================================================================
-- _delete_flights
-- Purpose   : The one routine that deletes flights.
-- Params    : p_flids: flights that exist; p_message_id; p_now
-- Returns   : nothing
-- Errors    : MX105 overtaken
-- Locks     : none
-- Reads     : none
-- Writes    : flight_tombstone, flight_schd and the nine detail tables
-- Called by : _apply_snapshot, _apply_fdel
-- Sources   : FS-3.3-9, D18
-- Oracle    : msgx_state.delete_flights
-- ================================================================================================
create or replace function _delete_flights(p_flids text[], p_message_id bigint, p_now timestamptz) returns void
language plpgsql volatile
as $$
begin
    perform _check_overtaken(p_message_id, p_flids, null);
    insert into flight_tombstone (flid, state_version, deleted_at, message_id)
    select f.flid, f.state_version + 1, p_now, p_message_id from flight_schd f where f.flid = any (p_flids)
    on conflict (flid) do update
       set state_version = excluded.state_version, deleted_at = excluded.deleted_at, message_id = excluded.message_id;
    delete from flight_gate d where d.flid = any (p_flids);
    delete from flight_checkin d where d.flid = any (p_flids);
    delete from flight_belt d where d.flid = any (p_flids);
    delete from flight_stand_plan d where d.flid = any (p_flids);
    delete from flight_chute d where d.flid = any (p_flids);
    delete from flight_delay d where d.flid = any (p_flids);
    delete from flight_bridge_op d where d.flid = any (p_flids);
    delete from flight_chock_op d where d.flid = any (p_flids);
    delete from flight_route_point d where d.flid = any (p_flids);
    delete from flight_schd f where f.flid = any (p_flids);
end;
$$;

comment on function _delete_flights(text[], bigint, timestamptz) is 'Removes flights with their details and leaves tombstones with the next version (D18).';
revoke all on function _delete_flights(text[], bigint, timestamptz) from public;
