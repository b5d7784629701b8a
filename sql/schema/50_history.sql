-- What was installed
-- Current shape. A change comes as a new file in migrations/ and is repeated here (see docs/dba.md).

create table schema_history (
    installed_rank integer generated always as identity not null,
    kind           varchar(12) not null,
    name           varchar(200) not null,
    checksum       varchar(64) not null,
    applied_at     timestamptz not null,
    applied_by     varchar(200) not null,
    constraint schema_history_pk primary key (installed_rank),
    constraint schema_history_kind_ck check (kind in ('versioned', 'repeatable'))
);

comment on table schema_history is 'Applied migrations and repeatable files (one row per application).';
comment on column schema_history.installed_rank is 'order of application';
comment on column schema_history.kind is 'versioned | repeatable';
comment on column schema_history.name is 'file name, below the folder of migrations or sql';
comment on column schema_history.checksum is 'SHA-256 of the file, hex';
comment on column schema_history.applied_at is 'instant';
comment on column schema_history.applied_by is 'session user';
