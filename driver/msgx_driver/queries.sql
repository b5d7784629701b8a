-- Every statement the driver sends, by name. Parameters are bound, never spliced; the schema comes from search_path.

-- name: use_schema
select set_config('search_path', %(schema)s, false);

-- name: inspect_schema
select n.oid is not null as present,
       coalesce(has_schema_privilege(n.oid, 'usage'), false) as usable,
       p.oid is not null as installed,
       coalesce(has_function_privilege(p.oid, 'execute'), false) as permitted,
       current_user::text as username
  from (select %(schema)s::name as wanted) w
  left join pg_catalog.pg_namespace n on n.nspname = w.wanted
  left join pg_catalog.pg_proc p on p.pronamespace = n.oid and p.proname = 'contract_version';

-- name: contract_version
select contract_version();

-- name: field_catalogue
select tag, kind, seq_tag, max_items, attrs from field_catalogue();

-- name: foreign_cursor
select source from inbox_cursor where source <> %(source)s order by source limit 1;

-- name: highest_id
select coalesce(max(message_id), 0) from proc_state;

-- name: enqueue_messages
select enqueue_messages(%(source)s, %(ids)s, %(payloads)s, %(encodings)s, null, %(now)s);

-- name: next_message
select message_id, attempts, due, next_attempt_at, payload, encoding from next_message(%(now)s);

-- name: process_message
select process_message(%(message_id)s, %(command)s, %(now)s);

-- name: record_failure
select record_failure(%(message_id)s, %(meta)s, %(payload)s, %(sqlstate)s, %(error_class)s, %(reason)s, %(now)s);

-- name: acquire_writer
select acquire_writer(%(now)s);

-- name: release_writer
select release_writer(%(now)s);

-- name: claim_events
select event_id, kind, flid, message_id, state_version, updated_at, epoch, value,
       %(target)s = 'KAFKA:msg' and is_redelivered(event_id) as redelivered
  from claim_events(%(target)s, %(token)s, %(limit)s, %(lease_seconds)s, %(now)s);

-- name: confirm_events
select confirm_events(%(target)s, %(token)s, %(flids)s, %(event_ids)s, %(now)s);

-- name: fail_events
select fail_events(%(target)s, %(token)s, %(event_ids)s, %(errors)s, %(now)s);

-- name: redeliver_events
select redeliver_events(%(event_ids)s, %(operator)s, %(reason)s, %(now)s);

-- name: block_target
select block_target(%(target)s, %(token)s, %(error)s, %(now)s);

-- name: release_target
select release_target(%(target)s, %(token)s, %(now)s);

-- name: preview_events
select target, kind, flid, event_id, message_id, state_version, updated_at, epoch, value from preview_events();

-- name: flight_projection
select flight_projection(%(flids)s);

-- name: count_status
select status, count(*) from proc_state where message_id = any (%(ids)s) group by status;

-- name: count_effects
select (select count(*) from flight_schd_display) as flights,
       (select count(*) from msg_event e where e.kind = 'TOMBSTONE' and e.message_id = any (%(ids)s)) as deleted,
       (select count(*) from msg_event e where e.message_id = any (%(ids)s)) as events;

-- name: refused
select message_id, status, error_class, last_error_class, reason
  from proc_state
 where message_id = any (%(ids)s) and status in ('DEAD', 'FAILED')
 order by message_id;

-- name: skip_reasons
select split_part(reason, ':', 1) as reason, count(*) as messages
  from proc_state
 where message_id = any (%(ids)s) and status = 'SKIPPED'
 group by 1
 order by 1;

-- name: board
select flid, flno as flight, mvin, fday, coalesce(sodt, std) as scheduled, estt, actt,
       stnd, concat_ws(' ', gate1, gate2) as gates, concat_ws(' ', counter1, counter2) as counters, belt1,
       concat_ws(' ', case when cncl is not null then 'cancelled' end, case when delays > 0 then 'delay ' || coalesce(delay_code1, '') end,
                 case when maid is not null then 'shared, main ' || maid end, remc) as remark
  from flight_schd_display
 order by fday nulls last, coalesce(sodt, std), flid
 limit %(limit)s;

-- name: queue_status
select status, messages, first_id, last_id, oldest_enqueued_at from queue_status order by status;

-- name: queue_head
select message_id, status, type, styp, attempts, error_class, reason, next_attempt_at, waiting from queue_head;

-- name: counts
select (select count(*) from flight_schd_display) as flights,
       (select count(*) from snapshot_ledger) as plans,
       (select coalesce(sum(pending), 0)::bigint from delivery_lag where target <> 'MAILBOX') as events_pending,
       (select count(*) from backfill_todo) as backfill_pending,
       (select count(*) from consistency_check) as anomalies;

-- name: dead_list
select message_id, processed_at, sndr, type, styp, seqn, error_class, last_error_class, attempts, bytes, reason
  from dead_letter
 order by message_id;

-- name: dead_show
select d.message_id, d.received_at, d.processed_at, d.sndr, d.type, d.styp, d.seqn, d.dttm, d.error_class, d.last_error_class,
       d.attempts, d.reason, d.encoding, d.bytes, r.payload
  from dead_letter d
  left join message_raw r on r.message_id = d.message_id
 where d.message_id = %(message_id)s;

-- name: settings
select name, value, default_value, pattern, description, changed_at, changed_by from setting order by name;

-- name: setting_value
select value from setting where name = %(name)s;

-- name: set_setting
select set_setting(%(name)s, %(value)s, %(now)s);

-- name: guard_session
select set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false),
       set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '20000', false),
       set_config('client_connection_check_interval', '5000', false);

-- name: queue_channel
select current_schema() || '_queue';

-- name: queue_is_deeper_than
select count(*) > %(depth)s
  from (select 1 from proc_state s
         where s.status in ('PENDING', 'FAILED') and s.message_id >= %(head)s
         order by s.message_id limit %(depth)s + 1) w;

-- name: flush_late
select set_config('synchronous_commit', %(value)s, false);

-- name: report_loop
select report_loop(%(loop)s, %(state)s, %(error)s, %(now)s);

-- name: health
select "check", status, detail, at from health order by "check";

-- name: republish_flights
select republish_flights(%(flids)s, %(fday)s, %(operator)s, %(reason)s, %(now)s);

-- name: inbox_cursor
select watermark, first_id, rescan_from from inbox_cursor where source = %(source)s;

-- name: start_inbox
select start_inbox(%(source)s, %(start_at)s, %(now)s);

-- name: scan_inbox
select scan_inbox(%(source)s, %(after)s, %(ids)s, %(max_id)s, %(transactions)s, %(id_step)s, %(now)s);

-- name: enqueue_inbox
select enqueue_inbox(%(source)s, %(after)s, %(upto)s, %(ids)s, %(payloads)s, %(encodings)s, %(received)s, %(now)s);

-- name: rescan_inbox
select rescan_inbox(%(source)s, %(ids)s, %(received)s, %(following)s, %(now)s);

-- name: enqueue_late
select enqueue_late(%(source)s, %(ids)s, %(payloads)s, %(encodings)s, %(received)s, %(now)s);

-- name: note_scan_failure
select note_scan_failure(%(source)s, %(now)s);

-- name: claim_backfill
select message_id, mailbox_id, backfill_seq, status, completed_at, gone
  from claim_backfill(%(source)s, %(token)s, %(limit)s, %(lease_seconds)s, %(now)s);

-- name: confirm_backfill
select confirm_backfill(%(token)s, %(message_ids)s, %(seqs)s, %(now)s);

-- name: fail_backfill
select fail_backfill(%(token)s, %(message_ids)s, %(seqs)s, %(error)s, %(now)s);
