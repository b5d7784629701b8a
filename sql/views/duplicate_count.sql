-- Messages whose business identity was already taken (D15, D31).
drop view if exists duplicate_count;

create view duplicate_count as
select split_part(s.reason, ':', 1) as kind, s.sndr, s.type, s.styp, count(*) as messages, max(s.message_id) as last_id
  from proc_state s
 where s.duplicate_of is not null
 group by split_part(s.reason, ':', 1), s.sndr, s.type, s.styp;

comment on view duplicate_count is 'Duplicates by kind: duplicate, identity-reused, duplicate-of-dead.';
