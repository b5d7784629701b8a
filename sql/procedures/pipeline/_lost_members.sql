-- ================================================================================================
-- _lost_members
-- Purpose   : Tell "one flight is missing" from "the state is lost".
-- Params    : p_flids: flights to look at, null = every list
-- Returns   : lost FLIDs, no order
-- Errors    : none
-- Locks     : none
-- Reads     : schd_gen_flid, flight_schd, flight_tombstone
-- Writes    : none
-- Called by : acquire_writer, _apply_flop, _apply_fdel, acknowledge_state_loss
-- Sources   : D25, US-03/8
-- Oracle    : msgx_pipeline.lost_members
-- ================================================================================================
create or replace function _lost_members(p_flids text[]) returns setof text
language sql stable
as $$
    select distinct g.flid::text
      from schd_gen_flid g
     where (p_flids is null or g.flid = any (p_flids))
       and not exists (select 1 from flight_schd f where f.flid = g.flid)
       and not exists (select 1 from flight_tombstone t where t.flid = g.flid)
$$;

comment on function _lost_members(text[]) is 'FLIDs on a current list that have neither a row nor a tombstone: lost state (D25).';
revoke all on function _lost_members(text[]) from public;
