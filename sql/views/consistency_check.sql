-- One row per anomaly; no row is the good answer.
drop view if exists consistency_check;

create view consistency_check as
select 'lost-member'::text as anomaly, m.flid as subject,
       'on a current list, but neither a row nor a tombstone (D25)'::text as detail
  from (select distinct g.flid::text as flid from schd_gen_flid g
         where not exists (select 1 from flight_schd f where f.flid = g.flid)
           and not exists (select 1 from flight_tombstone t where t.flid = g.flid)) m
union all
select 'list-without-plan', g.fday::text, 'members without a row in schd_gen'
  from (select distinct x.fday from schd_gen_flid x) g
 where not exists (select 1 from schd_gen s where s.fday = g.fday)
union all
select 'shared-without-main', f.flid, 'its main flight was deleted and it is still here (D23)'
  from flight_schd f
 where f.maid <> '' and f.maid <> f.flid
   and not exists (select 1 from flight_schd m where m.flid = f.maid)
   and exists (select 1 from flight_tombstone t where t.flid = f.maid and t.message_id > f.high_message_id)
   and not exists (select 1 from schd_gen_flid g where g.flid = f.flid)
union all
select 'orphan-detail', d.flid, 'detail rows of a flight that has no row: ' || d.tab
  from (select distinct flid, 'flight_gate' as tab from flight_gate
        union all select distinct flid, 'flight_checkin' from flight_checkin
        union all select distinct flid, 'flight_belt' from flight_belt
        union all select distinct flid, 'flight_stand_plan' from flight_stand_plan
        union all select distinct flid, 'flight_chute' from flight_chute
        union all select distinct flid, 'flight_delay' from flight_delay
        union all select distinct flid, 'flight_bridge_op' from flight_bridge_op
        union all select distinct flid, 'flight_chock_op' from flight_chock_op
        union all select distinct flid, 'flight_route_point' from flight_route_point) d
 where not exists (select 1 from flight_schd f where f.flid = d.flid)
union all
select 'state-without-flight', e.flid, 'a pending STATE has neither a flight nor a later TOMBSTONE'
  from msg_event e
 where e.status = 'PENDING' and e.kind = 'STATE'
   and not exists (select 1 from flight_schd f where f.flid = e.flid)
   and not exists (select 1 from msg_event t where t.flid = e.flid and t.kind = 'TOMBSTONE' and t.event_id > e.event_id)
union all
select 'no-writer-row', 'pipeline_lock', 'the row FLIGHT_SCHD_WRITER is missing (MX902)'
 where not exists (select 1 from pipeline_lock l where l.name = 'FLIGHT_SCHD_WRITER')
union all
select 'no-original', s.message_id::text, 'an unfinished message has no bytes in message_raw (D20)'
  from proc_state s
 where s.status in ('PENDING', 'FAILED')
   and not exists (select 1 from message_raw r where r.message_id = s.message_id)
union all
select 'terminal-without-backfill', s.message_id::text, 'a terminal message has no backfill intent (US-09/1)'
  from proc_state s
 where s.status in ('SUCCEEDED', 'SKIPPED', 'DEAD') and s.backfill_status = 'NONE';

comment on view consistency_check is 'Anomalies of the stored state, one row each; empty is good.';
