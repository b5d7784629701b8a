-- Messages skipped by an ignore rule (US-04/2).
drop view if exists ignored_count;

create view ignored_count as
select substr(s.reason, 9) as rule, count(*) as messages, max(s.message_id) as last_id
  from proc_state s
 where s.status = 'SKIPPED' and s.reason like 'ignored:%'
 group by substr(s.reason, 9);

comment on view ignored_count is 'Ignored messages by rule (US-04/2).';
