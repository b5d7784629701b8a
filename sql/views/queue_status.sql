-- Messages by status, with ages.
drop view if exists queue_status;

create view queue_status as
select s.status, count(*) as messages, min(s.message_id) as first_id, max(s.message_id) as last_id,
       min(s.enqueued_at) as oldest_enqueued_at
  from proc_state s
 group by s.status;

comment on view queue_status is 'Number of messages in each status.';
