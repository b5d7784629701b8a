-- Terminal messages whose mailbox row is still to be marked (D17).
drop view if exists backfill_todo;

create view backfill_todo as
select s.message_id, s.mailbox_id, s.source, s.status, s.processed_at, s.backfill_status, s.backfill_seq, s.backfill_attempts, s.backfill_next_at
  from proc_state s
 where s.backfill_status in ('PENDING', 'CLAIMED');

comment on view backfill_todo is 'Backfill intents that are still open (US-09).';
