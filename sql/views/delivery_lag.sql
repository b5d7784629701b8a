-- What is still to be delivered, per target.
drop view if exists delivery_lag;

create view delivery_lag as
select t.target, coalesce(p.pending, 0) as pending, p.first_id, p.oldest_at, coalesce(d.dead, 0) as dead,
       t.failures, t.blocked_since, t.last_error, t.confirmed_at, t.lease_until
  from delivery_target t
  -- A target each, as their partial indexes have it.
  left join (select 'KAFKA:msg' as target, count(*) as pending, min(e.event_id) as first_id, min(e.created_at) as oldest_at
               from msg_event e where e.status = 'PENDING' and e.target = 'KAFKA:msg' having count(*) > 0
             union all
             select 'KAFKA:schd', count(*), min(e.event_id), min(e.created_at)
               from msg_event e where e.status = 'PENDING' and e.target = 'KAFKA:schd' having count(*) > 0
             union all
             select 'MAILBOX', count(*), min(s.message_id), min(s.processed_at)
               from proc_state s where s.backfill_status in ('PENDING', 'CLAIMED') and s.mailbox_id is not null having count(*) > 0) p
    on p.target = t.target
  left join (select e.target, count(*) as dead from msg_event e where e.status = 'DEAD' group by e.target) d on d.target = t.target;

comment on view delivery_lag is 'Open events and mailbox marks per target, and whether the target refuses (US-07/6, US-09/5).';
