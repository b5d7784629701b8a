-- The service: holes of the mailbox scan, targets of effects, loops
-- Current shape. A change comes as a new file in migrations/ and is repeated here (see docs/dba.md).

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
    lease_seconds integer,
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
comment on column delivery_target.lease_seconds is 'length of the lease; tells a long lease from a clock that went back';

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
