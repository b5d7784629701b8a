-- ================================================================================================
-- _add_events
-- Purpose   : The one routine that writes the outbox.
-- Params    : p_message_id: cause, null = the last message of each flight; p_entries: events in order; p_now
-- Returns   : number of events
-- Errors    : none
-- Locks     : none
-- Reads     : msg_event, delivery_target, flight_schd, flight_tombstone
-- Writes    : msg_event
-- Called by : _apply_snapshot, _apply_adft, _apply_flop, _apply_fdel, republish_flights
-- Sources   : FS-8, D41, contract 3
-- Oracle    : msgx_outbox.add_events
-- ================================================================================================
create or replace function _add_events(p_message_id bigint, p_entries outbox_entry[], p_now timestamptz) returns integer
language plpgsql volatile
as $$
declare
    v_last bigint;
begin
    -- A floor may be above all rows that are left: an id below it would never be delivered.
    v_last := greatest((select max(e.event_id) from msg_event e),
                       (select max(t.floor_id) - 1 from delivery_target t where t.target <> 'MAILBOX'), 0);
    insert into msg_event (event_id, target, kind, flid, state_version, message_id, payload, created_at)
    select v_last + n.ord, n.target, n.kind, n.flid, n.state_version,
           coalesce(p_message_id, (select f.last_message_id from flight_schd f where f.flid = n.flid),
                    (select t.message_id from flight_tombstone t where t.flid = n.flid)),
           n.payload, p_now
      from unnest(p_entries) with ordinality as n (target, kind, flid, state_version, payload, ord);
    return coalesce(cardinality(p_entries), 0);
end;
$$;

comment on function _add_events(bigint, outbox_entry[], timestamptz) is 'Adds events to the outbox in the given order; ids without gaps, under the lock row (D41).';
revoke all on function _add_events(bigint, outbox_entry[], timestamptz) from public;
