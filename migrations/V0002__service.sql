-- The service: mailbox scan, effect targets, loops. Forward only; the shape is repeated in sql/schema.

alter table proc_state add column mailbox_id bigint;
alter table proc_state add column late boolean not null default false;
comment on column proc_state.mailbox_id is 'id in the mailbox; message_id less the id_offset in force when it was taken (D38); null when it did not come from one';
comment on column proc_state.late is 'found behind the watermark: a greater id had been taken before (D29)';

alter table inbox_cursor add column first_id bigint not null default 1;
comment on column inbox_cursor.first_id is 'ids below it are none of ours: reading started here';

create index proc_state_backfill_ix on proc_state (message_id) where backfill_status in ('PENDING', 'CLAIMED');
create index msg_event_state_ix on msg_event (event_id) where status = 'PENDING' and target = 'KAFKA:schd';
create index msg_event_dead_ix on msg_event (event_id) where status = 'DEAD';

create table inbox_gap (
    source      varchar(60) not null,
    first_id    bigint not null,
    last_id     bigint not null,
    seen_at     timestamptz not null,
    waits_for   text[],
    given_up_at timestamptz,
    filled_at   timestamptz,
    constraint inbox_gap_pk primary key (source, first_id),
    constraint inbox_gap_range_ck check (first_id <= last_id)
);

create index inbox_gap_open_ix on inbox_gap (source, first_id) where given_up_at is null and filled_at is null;

comment on table inbox_gap is 'Ids missing in the mailbox below an id that is there (US-01/5); an open one holds back what comes after it.';
comment on column inbox_gap.source is 'mailbox, as in inbox_cursor';
comment on column inbox_gap.first_id is 'first missing mailbox id';
comment on column inbox_gap.last_id is 'last missing mailbox id';
comment on column inbox_gap.seen_at is 'instant of first sight; a restart does not change it';
comment on column inbox_gap.waits_for is 'transactions of the mailbox that were open when it was seen again; null = not known';
comment on column inbox_gap.given_up_at is 'instant from which the ids count as never coming';
comment on column inbox_gap.filled_at is 'instant all its ids had come, or the first came after it was given up';

create table delivery_target (
    target        varchar(20) not null,
    floor_id      bigint not null,
    lease_token   uuid,
    lease_until   timestamptz,
    failures      integer not null default 0,
    blocked_since timestamptz,
    last_error    varchar(1000),
    confirmed_at  timestamptz,
    constraint delivery_target_pk primary key (target),
    constraint delivery_target_name_ck check (target in ('KAFKA:msg', 'KAFKA:schd', 'MAILBOX'))
) with (fillfactor = 20);

comment on table delivery_target is 'Where effects go outside the commit: who delivers, and from where on there is work. Writing its row flushes what is read with it (contract 4).';
comment on column delivery_target.target is 'KAFKA:msg | KAFKA:schd | MAILBOX';
comment on column delivery_target.floor_id is 'no open event (message for MAILBOX) has a smaller id';
comment on column delivery_target.lease_token is 'who delivers now; null = nobody';
comment on column delivery_target.lease_until is 'the lease ends here; then anybody may take it';
comment on column delivery_target.failures is 'failures of the target in a row (D39)';
comment on column delivery_target.blocked_since is 'the target refuses since; null = it works';
comment on column delivery_target.last_error is 'last error of the target';
comment on column delivery_target.confirmed_at is 'last confirmation';

create table loop_status (
    loop       varchar(20) not null,
    state      varchar(10) not null,
    since      timestamptz not null,
    beat_at    timestamptz not null,
    failures   integer not null default 0,
    last_error varchar(1000),
    constraint loop_status_pk primary key (loop),
    constraint loop_status_state_ck check (state in ('RUNNING', 'FAILED', 'STOPPED'))
) with (fillfactor = 20);

comment on table loop_status is 'What the loops of the service say of themselves (OPS-2).';
comment on column loop_status.loop is 'poller | pump | relay | backfill';
comment on column loop_status.state is 'RUNNING | FAILED (it tries again) | STOPPED';
comment on column loop_status.since is 'in this state since';
comment on column loop_status.beat_at is 'last sign of life';
comment on column loop_status.failures is 'failures in a row';
comment on column loop_status.last_error is 'last error, without payloads';

insert into delivery_target (target, floor_id) values ('KAFKA:msg', 0), ('KAFKA:schd', 0), ('MAILBOX', 0);

insert into error_class (sqlstate_prefix, error_class, treatment, meaning) values
    ('MX105', 'INFRA', 'dead', 'a late message meets flights that a later message has written (D29)');

insert into setting (name, value, default_value, pattern, description, changed_at, changed_by) values
    ('airport.time_zone', 'Asia/Shanghai', 'Asia/Shanghai', '[A-Z][A-Za-z_]*(/[A-Za-z_+-]+){0,2}[0-9]{0,2}',
     'contract: time zone of the airport and of the local times of the mailbox', now(), session_user),
    ('pipeline.max_commit_delay', '30', '30', '[0-9]{1,5}',
     'US-01/5: seconds after which an id missing in the mailbox counts as never coming', now(), session_user),
    ('inbox.late_row', 'guard', 'guard', 'guard|process',
     'D29: a late message that meets flights of a later one ends DEAD, or is processed', now(), session_user),
    ('inbox.rescan_depth', '10000', '10000', '[0-9]{1,9}',
     'US-01/3: ids behind the watermark that the compensation scan looks at again', now(), session_user),
    ('delivery.max_attempts', '8', '8', '[1-9][0-9]?',
     'D39: failed deliveries of one record before it is DEAD', now(), session_user),
    ('delivery.backoff_base', '1', '1', '[1-9][0-9]{0,3}',
     'US-07/2: first wait after a failed delivery in seconds; doubles with every attempt', now(), session_user),
    ('delivery.backoff_cap', '60', '60', '[1-9][0-9]{0,4}',
     'US-07/2: longest wait in seconds', now(), session_user),
    ('backfill.backoff_base', '1', '1', '[1-9][0-9]{0,3}',
     'US-09/2: first wait after a failed mark in seconds; doubles with every attempt', now(), session_user),
    ('backfill.backoff_cap', '300', '300', '[1-9][0-9]{0,4}',
     'US-09/2: longest wait in seconds', now(), session_user),
    ('backfill.overdue_after', '3600', '3600', '[1-9][0-9]{0,6}',
     'US-09: seconds after enqueueing from which a mark no longer waits for its backoff', now(), session_user);
