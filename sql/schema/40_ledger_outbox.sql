-- Day plan ledger and outbox
-- Current shape. A change comes as a new file in migrations/ and is repeated here (see docs/dba.md).

create table schd_gen (
    fday            date not null,
    version         bigint not null,
    last_message_id bigint not null,
    recs            integer not null,
    applied_at      timestamptz not null,
    constraint schd_gen_pk primary key (fday)
);

comment on table schd_gen is 'Latest plan (snapshot) of each operating day (FS-3.3-2).';
comment on column schd_gen.fday is 'operating day';
comment on column schd_gen.version is 'plans committed for that day, from 1; compare-and-swap';
comment on column schd_gen.last_message_id is 'message of the latest plan; a replay of it is short-circuited (FS-3.3-7)';
comment on column schd_gen.recs is 'records in that plan';
comment on column schd_gen.applied_at is 'instant';

create table schd_gen_flid (
    fday date not null,
    flid varchar(20) not null,
    constraint schd_gen_flid_pk primary key (fday, flid)
);

create index schd_gen_flid_flid_ix on schd_gen_flid (flid);

comment on table schd_gen_flid is 'Members of the latest plan of each day: the old list of the next comparison (FS-3.3-3).';
comment on column schd_gen_flid.fday is 'operating day';
comment on column schd_gen_flid.flid is 'member';

create table msg_event (
    event_id        bigint not null,
    target          varchar(20) not null,
    kind            varchar(10) not null,
    flid            varchar(20) not null,
    state_version   bigint not null,
    message_id      bigint not null,
    payload         jsonb,
    status          varchar(10) not null default 'PENDING',
    attempts        integer not null default 0,
    next_attempt_at timestamptz,
    lease_token     uuid,
    created_at      timestamptz not null,
    sent_at         timestamptz,
    last_error      varchar(1000),
    redelivered     boolean not null default false,
    constraint msg_event_pk primary key (event_id),
    constraint msg_event_target_ck check (target in ('KAFKA:msg', 'KAFKA:schd')),
    constraint msg_event_kind_ck check ((target = 'KAFKA:msg' and kind = 'NOTICE') or (target = 'KAFKA:schd' and kind in ('STATE', 'TOMBSTONE'))),
    constraint msg_event_status_ck check (status in ('PENDING', 'SENT', 'DEAD'))
) with (fillfactor = 80);

create index msg_event_notice_ix on msg_event (event_id) where status = 'PENDING' and target = 'KAFKA:msg';
create index msg_event_flid_ix on msg_event (flid, event_id) where status = 'PENDING' and target = 'KAFKA:schd';
create index msg_event_state_ix on msg_event (event_id) where status = 'PENDING' and target = 'KAFKA:schd';
create index msg_event_dead_ix on msg_event (event_id) where status = 'DEAD';

comment on table msg_event is 'Outbox: what is to be told downstream (FS-8). Ids are given under the lock row, without gaps: id order = commit order.';
comment on column msg_event.event_id is 'stable id of the event';
comment on column msg_event.target is 'KAFKA:msg | KAFKA:schd';
comment on column msg_event.kind is 'NOTICE | STATE | TOMBSTONE';
comment on column msg_event.flid is 'flight, the partition key';
comment on column msg_event.state_version is 'version of the flight after the message';
comment on column msg_event.message_id is 'message that caused it';
comment on column msg_event.payload is 'body of a NOTICE; null for STATE (projected when sent) and TOMBSTONE';
comment on column msg_event.status is 'PENDING | SENT | DEAD';
comment on column msg_event.attempts is 'failed deliveries that count (D39)';
comment on column msg_event.next_attempt_at is 'due from here on; null = at once';
comment on column msg_event.lease_token is 'claim of the relay';
comment on column msg_event.created_at is 'instant';
comment on column msg_event.sent_at is 'instant the broker confirmed';
comment on column msg_event.last_error is 'last delivery error';
comment on column msg_event.redelivered is 'an operator sends a DEAD notice again; its place in the order is lost (D39)';

create type outbox_entry as (
    target        varchar(20),
    kind          varchar(10),
    flid          varchar(20),
    state_version bigint,
    payload       jsonb
);

comment on type outbox_entry is 'One event to add to msg_event, in the order of the array that carries it (D41).';
