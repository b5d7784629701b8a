-- Statements of the benchmark that are no part of the product, by name.

-- name: server_facts
select current_setting('server_version') as version, current_setting('fsync') as fsync,
       current_setting('full_page_writes') as full_page_writes, current_setting('synchronous_commit') as synchronous_commit;

-- name: detail_rows
select (select count(*) from flight_gate) + (select count(*) from flight_checkin) + (select count(*) from flight_belt)
     + (select count(*) from flight_stand_plan) + (select count(*) from flight_chute) + (select count(*) from flight_delay)
     + (select count(*) from flight_bridge_op) + (select count(*) from flight_chock_op) + (select count(*) from flight_route_point);

-- name: finished_messages
-- A plausible past: of a hundred 95 succeeded, 4 were skipped as duplicates, 1 is dead.
insert into proc_state (message_id, source, received_at, raw_hash, status, error_class, last_error_class, reason, attempts,
                        enqueued_at, processed_at, sndr, type, styp, seqn, dttm, identity_key, payload_hash, duplicate_of, result,
                        backfill_status, backfill_seq, backfilled_at)
select g, 'replay', t.at, sha256(int8send(g)), t.status,
       case when t.status = 'DEAD' then 'MALFORMED' end, case when t.status = 'DEAD' then 'MALFORMED' end,
       case t.status when 'DEAD' then 'message ' || g || ': FLOP record 1: text between the elements'
                     when 'SKIPPED' then 'duplicate: message ' || g - 1 || ' holds the identity of message ' || g end,
       case when t.status = 'DEAD' then 1 else 0 end,
       t.at, t.at, 'AODB', 'FLOP', t.styp, t.seqn::text, '20260901040000', 'PAST|FLOP|' || t.styp || '|' || t.seqn,
       sha256(int8send(t.seqn)), case when t.status = 'SKIPPED' then g - 1 end,
       case when t.status = 'SUCCEEDED' then '{"written": 1, "records": 1}'::jsonb end, 'DONE', 1, t.at
  from generate_series(%(first)s::bigint, %(last)s::bigint) as g
 cross join lateral (
       select case when g %% 100 = 0 then 'DEAD' when g %% 25 = 1 then 'SKIPPED' else 'SUCCEEDED' end as status,
              (array['GTDT', 'ESTT', 'DELY'])[1 + g %% 3] as styp,
              case when g %% 25 = 1 then g - 1 else g end as seqn,
              timestamptz '2026-01-01 00:00+00' + g * interval '1 second' as at) as t;

-- name: finished_identities
insert into message_identity (identity_key, message_id, payload_hash, dttm, bound_at)
select 'PAST|FLOP|' || (array['GTDT', 'ESTT', 'DELY'])[1 + g %% 3] || '|' || g, g, sha256(int8send(g)), '20260901040000',
       timestamptz '2026-01-01 00:00+00' + g * interval '1 second'
  from generate_series(%(first)s::bigint, %(last)s::bigint) as g
 where g %% 25 <> 1;

-- name: queued_payloads
select r.message_id, r.payload from message_raw r where r.message_id >= %(first)s order by r.message_id;

-- name: from_a_mailbox
-- As if the messages had come from a mailbox: only those are marked there.
insert into inbox_cursor (source, watermark) values ('replay', 0) on conflict (source) do nothing;
update proc_state set mailbox_id = message_id where mailbox_id is null and message_id >= (select floor_id from delivery_target where target = 'MAILBOX');

-- name: nothing_sent
update msg_event set status = 'PENDING', sent_at = null, lease_token = null where target = 'KAFKA:schd' and status = 'SENT';
update delivery_target set floor_id = 0, lease_token = null, lease_until = null;
