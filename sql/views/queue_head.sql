-- The message that everything waits for.
drop view if exists queue_head;

create view queue_head as
select s.message_id, s.status, s.sndr, s.type, s.styp, s.seqn, s.attempts, s.error_class, s.reason, s.next_attempt_at,
       s.received_at, s.enqueued_at,
       (select count(*) from proc_state w where w.status in ('PENDING', 'FAILED')) as waiting
  from proc_state s
 where s.status in ('PENDING', 'FAILED')
 order by s.message_id
 limit 1;

comment on view queue_head is 'Head of the queue: smallest id in PENDING or FAILED (FS-4.1-1); no row when the queue is empty.';
