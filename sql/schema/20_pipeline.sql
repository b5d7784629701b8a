-- The queue: received messages, their state, identity and the writer's lock
-- Current shape. A change comes as a new file in migrations/ and is repeated here (see docs/dba.md).

create table pipeline_lock (
    name           varchar(30) not null,
    writer_pid     integer,
    writer_started timestamptz,
    released_at    timestamptz,
    epoch          integer not null,
    queue_floor    bigint not null,
    constraint pipeline_lock_pk primary key (name)
) with (fillfactor = 20);

comment on table pipeline_lock is 'The row every processing transaction locks first (FS-3.2-5), and who may write (OPS-1).';
comment on column pipeline_lock.name is 'FLIGHT_SCHD_WRITER';
comment on column pipeline_lock.writer_pid is 'server process of the session that holds the write right';
comment on column pipeline_lock.writer_started is 'instant at which it took the right; tells a reused pid apart';
comment on column pipeline_lock.released_at is 'set by release_writer; null while a writer is active or after it died (D35)';
comment on column pipeline_lock.epoch is 'generation of the state store; grows when lost state is acknowledged (D25)';
comment on column pipeline_lock.queue_floor is 'no PENDING or FAILED message has a smaller id; moved in steps so that the head lookup reads few rows';

create table inbox_cursor (
    source      varchar(60) not null,
    watermark   bigint not null,
    id_offset   bigint not null default 0,
    scanned_at  timestamptz,
    rescan_from bigint,
    failures    integer not null default 0,
    first_id    bigint not null default 1,
    constraint inbox_cursor_pk primary key (source)
);

comment on table inbox_cursor is 'Where collecting messages stands, per source (US-01).';
comment on column inbox_cursor.source is 'replay, or the name of a mailbox';
comment on column inbox_cursor.watermark is 'every id up to here has been seen';
comment on column inbox_cursor.id_offset is 'added to a mailbox id (D38)';
comment on column inbox_cursor.scanned_at is 'last scan';
comment on column inbox_cursor.rescan_from is 'next id of the compensation scan';
comment on column inbox_cursor.failures is 'failed scans in a row';
comment on column inbox_cursor.first_id is 'ids below it are none of ours: reading started here';

create table message_raw (
    message_id  bigint not null,
    payload     bytea not null,
    encoding    varchar(5) not null,
    received_at timestamptz not null,
    constraint message_raw_pk primary key (message_id),
    constraint message_raw_encoding_ck check (encoding in ('bytes', 'text'))
);

comment on table message_raw is 'Original bytes of each message, for diagnosis and replay (D20, US-03/2).';
comment on column message_raw.message_id is 'mailbox id';
comment on column message_raw.payload is 'bytes as received, never changed';
comment on column message_raw.encoding is 'bytes = own XML declaration decides; text = UTF-8 of text that was already decoded';
comment on column message_raw.received_at is 'receive time in the mailbox';

create table proc_state (
    message_id        bigint not null,
    source            varchar(60) not null,
    received_at       timestamptz not null,
    raw_hash          bytea not null,
    status            varchar(10) not null default 'PENDING',
    error_class       varchar(12),
    last_error_class  varchar(12),
    reason            varchar(4000),
    attempts          integer not null default 0,
    next_attempt_at   timestamptz,
    enqueued_at       timestamptz not null,
    processed_at      timestamptz,
    sndr              varchar(200),
    type              varchar(200),
    styp              varchar(200),
    seqn              varchar(200),
    dttm              varchar(200),
    identity_key      varchar(1300),
    payload_hash      bytea,
    duplicate_of      bigint,
    result            jsonb,
    backfill_status   varchar(10) not null default 'NONE',
    backfill_seq      integer not null default 0,
    backfill_attempts integer not null default 0,
    backfill_next_at  timestamptz,
    backfilled_at     timestamptz,
    mailbox_id        bigint,
    late              boolean not null default false,
    constraint proc_state_pk primary key (message_id),
    constraint proc_state_status_ck check (status in ('PENDING', 'FAILED', 'SUCCEEDED', 'SKIPPED', 'DEAD')),
    constraint proc_state_class_ck check (error_class in ('MALFORMED', 'CODEC_ERROR', 'UNSUPPORTED', 'INFRA', 'EXHAUSTED')),
    constraint proc_state_backfill_ck check (backfill_status in ('NONE', 'PENDING', 'CLAIMED', 'DONE')),
    constraint proc_state_terminal_ck check ((status in ('PENDING', 'FAILED')) = (processed_at is null))
) with (fillfactor = 70);

create index proc_state_head_ix on proc_state (message_id) where status in ('PENDING', 'FAILED');
create index proc_state_dead_ix on proc_state (message_id) where status = 'DEAD';
create index proc_state_backfill_ix on proc_state (message_id) where backfill_status in ('PENDING', 'CLAIMED');

comment on table proc_state is 'Processing state of every message (FS-0-20, US-03).';
comment on column proc_state.message_id is 'mailbox id; the queue order';
comment on column proc_state.source is 'where it came from, as in inbox_cursor';
comment on column proc_state.received_at is 'receive time in the mailbox';
comment on column proc_state.raw_hash is 'SHA-256 of the payload';
comment on column proc_state.status is 'PENDING | FAILED (both hold the head) | SUCCEEDED | SKIPPED | DEAD';
comment on column proc_state.error_class is 'class of the failure: MALFORMED | CODEC_ERROR | UNSUPPORTED | INFRA | EXHAUSTED';
comment on column proc_state.last_error_class is 'class of the last attempt, kept when EXHAUSTED (D14)';
comment on column proc_state.reason is 'message, tag, FLID and rule; never values of the message';
comment on column proc_state.attempts is 'failed attempts that count; 0 again after success';
comment on column proc_state.next_attempt_at is 'a FAILED message is due from here on';
comment on column proc_state.enqueued_at is 'instant it entered this queue';
comment on column proc_state.processed_at is 'instant it became terminal';
comment on column proc_state.sndr is 'META SNDR';
comment on column proc_state.type is 'META TYPE';
comment on column proc_state.styp is 'META STYP';
comment on column proc_state.seqn is 'META SEQN as sent';
comment on column proc_state.dttm is 'META DTTM as sent, yyyyMMddHHmmss airport time';
comment on column proc_state.identity_key is 'sender|type|subtype|sequence (FS-4.1-5)';
comment on column proc_state.payload_hash is 'SHA-256 of the command without META (D15)';
comment on column proc_state.duplicate_of is 'message that holds the identity';
comment on column proc_state.result is 'what processing did, by name and count';
comment on column proc_state.backfill_status is 'NONE | PENDING | CLAIMED | DONE: mark the mailbox row (D17, US-09)';
comment on column proc_state.backfill_seq is 'grows with each terminal status; an older confirmation is void';
comment on column proc_state.backfill_attempts is 'failed backfill attempts';
comment on column proc_state.backfill_next_at is 'backfill is due from here on';
comment on column proc_state.backfilled_at is 'instant the mailbox row was marked';
comment on column proc_state.mailbox_id is 'id in the mailbox; message_id less the id_offset in force when it was taken (D38); null when it did not come from one';
comment on column proc_state.late is 'found behind the watermark: a greater id had been taken before (D29)';

create table message_identity (
    identity_key varchar(1300) not null,
    message_id   bigint not null,
    payload_hash bytea,
    dttm         varchar(14),
    bound_at     timestamptz not null,
    constraint message_identity_pk primary key (identity_key)
);

comment on table message_identity is 'Which message holds a business identity (FS-4.1-5); survives archiving.';
comment on column message_identity.identity_key is 'sender|type|subtype|sequence, optionally |day (D16)';
comment on column message_identity.message_id is 'holder';
comment on column message_identity.payload_hash is 'SHA-256 of its command without META';
comment on column message_identity.dttm is 'its DTTM when it is a full yyyyMMddHHmmss, else null';
comment on column message_identity.bound_at is 'instant of binding';

create table operator_audit (
    audit_id     bigint generated always as identity not null,
    done_at      timestamptz not null,
    action       varchar(60) not null,
    operator     varchar(200) not null,
    session_name varchar(200) not null,
    reason       varchar(1000) not null,
    detail       jsonb not null,
    constraint operator_audit_pk primary key (audit_id)
);

comment on table operator_audit is 'Interventions of operators, kept for good.';
comment on column operator_audit.audit_id is 'order';
comment on column operator_audit.done_at is 'instant';
comment on column operator_audit.action is 'what was done';
comment on column operator_audit.operator is 'operator as claimed';
comment on column operator_audit.session_name is 'session user as authenticated';
comment on column operator_audit.reason is 'reason as given';
comment on column operator_audit.detail is 'what it changed, by name and count';
