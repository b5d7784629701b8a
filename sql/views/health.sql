-- One row per check. A view knows no clock: "at" is for the reader, who knows the time. Anomalies have a view of their own.
drop view if exists health;

create view health as
select 'loop ' || l.loop as "check", case l.state when 'RUNNING' then 'ok' when 'FAILED' then 'fail' else 'warn' end as status,
       format('%s since %s, last sign of life %s', l.state, l.since, l.beat_at)
           || case when l.state = 'FAILED' then ': ' || coalesce(l.last_error, '') else '' end as detail,
       l.beat_at as at
  from loop_status l
union all
select 'target ' || t.target, case when t.blocked_since is not null then 'fail' when e.dead > 0 then 'warn' else 'ok' end,
       format('%s DEAD, last confirmation %s', e.dead, coalesce(t.confirmed_at::text, 'never'))
           || case when t.blocked_since is not null then format(', refuses since %s: %s', t.blocked_since, t.last_error) else '' end,
       g.oldest_at
  from delivery_target t
 cross join lateral (select count(*) as dead from msg_event e where e.status = 'DEAD' and e.target = t.target) e
 cross join lateral (
     -- A target each, as their partial indexes have it.
     select case t.target
                when 'KAFKA:msg' then (select min(p.created_at) from msg_event p where p.status = 'PENDING' and p.target = 'KAFKA:msg')
                when 'KAFKA:schd' then (select min(p.created_at) from msg_event p where p.status = 'PENDING' and p.target = 'KAFKA:schd')
                else (select min(m.processed_at) from proc_state m
                       where m.backfill_status in ('PENDING', 'CLAIMED') and m.mailbox_id is not null) end as oldest_at) g
union all
select 'states', case when o.orphans > 0 then 'fail' else 'ok' end,
       format('%s pending states of flights that are not there', o.orphans)
           || case when o.orphans > 0 then ', see consistency_check' else '' end,
       o.oldest_at
  from (select count(*) as orphans, min(e.created_at) as oldest_at from msg_event e
         where e.status = 'PENDING' and e.target = 'KAFKA:schd' and e.kind = 'STATE'
           and not exists (select 1 from flight_schd f where f.flid = e.flid)
           and not exists (select 1 from msg_event t
                            where t.status = 'PENDING' and t.target = 'KAFKA:schd' and t.flid = e.flid and t.kind = 'TOMBSTONE'
                              and t.event_id > e.event_id)) o
union all
select 'mailbox ' || c.source, case when c.failures > 0 then 'fail' when g.holes > 0 then 'warn' else 'ok' end,
       format('watermark %s, last scan %s, %s failures in a row, waits for %s holes', c.watermark,
              coalesce(c.scanned_at::text, 'never'), c.failures, g.holes),
       c.scanned_at
  from inbox_cursor c
 cross join lateral (select count(*) as holes from inbox_gap i
                      where i.source = c.source and i.given_up_at is null and i.filled_at is null) g
union all
select 'queue', case when h.status = 'FAILED' then 'warn' else 'ok' end,
       case when h.message_id is null then 'empty'
            else format('message %s is %s after %s attempts, enqueued %s', h.message_id, h.status, h.attempts, h.enqueued_at) end,
       h.enqueued_at
  from (select 1 as one) o
  left join lateral (select s.message_id, s.status, s.attempts, s.enqueued_at from proc_state s
                      where s.status in ('PENDING', 'FAILED') order by s.message_id limit 1) h on true
union all
select 'messages', case when d.dead > 0 then 'warn' else 'ok' end, format('%s DEAD, see dead_letter', d.dead), null
  from (select count(*) as dead from proc_state s where s.status = 'DEAD') d;

comment on view health is 'ok, warn or fail per check: loops, targets, mailbox, queue, DEAD messages; at = last sign of life, or what waits longest (OPS-2).';
