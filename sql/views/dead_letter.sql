-- Refused messages with their reasons; the bytes are in message_raw.
drop view if exists dead_letter;

create view dead_letter as
select s.message_id, s.received_at, s.processed_at, s.sndr, s.type, s.styp, s.seqn, s.dttm,
       s.error_class, s.last_error_class, s.attempts, s.reason, r.encoding, octet_length(r.payload) as bytes
  from proc_state s
  left join message_raw r on r.message_id = s.message_id
 where s.status = 'DEAD';

comment on view dead_letter is 'DEAD messages: class, reason (message, tag, FLID, rule) and size of the kept original.';
