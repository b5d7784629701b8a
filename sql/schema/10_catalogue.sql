-- Settings and catalogues: rules and names that are data
-- Current shape. A change comes as a new file in migrations/ and is repeated here (see docs/dba.md).

create table setting (
    name          varchar(60) not null,
    value         varchar(200) not null,
    default_value varchar(200) not null,
    pattern       varchar(400) not null,
    description   varchar(1000) not null,
    changed_at    timestamptz not null,
    changed_by    varchar(200) not null,
    constraint setting_pk primary key (name),
    constraint setting_value_ck check (value ~ ('^(?:' || pattern || ')$'))
);

comment on table setting is 'Every rule that changes stored rows and can be chosen (docs/decisions.md). Changed only through set_setting.';
comment on column setting.name is 'dotted name, e.g. snapshot.absent_flight';
comment on column setting.value is 'value in force';
comment on column setting.default_value is 'value after installation';
comment on column setting.pattern is 'regular expression that a value must match as a whole';
comment on column setting.description is 'what it decides, unit, decision id';
comment on column setting.changed_at is 'instant of the last change';
comment on column setting.changed_by is 'session user of the last change';

create table setting_history (
    history_id bigint generated always as identity not null,
    name       varchar(60) not null,
    old_value  varchar(200) not null,
    new_value  varchar(200) not null,
    changed_at timestamptz not null,
    changed_by varchar(200) not null,
    constraint setting_history_pk primary key (history_id)
);

comment on table setting_history is 'One row per change of a setting, kept for good.';
comment on column setting_history.history_id is 'order of changes';
comment on column setting_history.name is 'setting';
comment on column setting_history.old_value is 'value before';
comment on column setting_history.new_value is 'value after';
comment on column setting_history.changed_at is 'instant';
comment on column setting_history.changed_by is 'session user';

create table flight_field (
    tag       varchar(4) not null,
    kind      varchar(10) not null,
    target    varchar(30) not null,
    width     integer not null,
    seq_tag   varchar(4),
    match_tag varchar(4),
    max_items integer,
    attrs     text[],
    constraint flight_field_pk primary key (tag),
    constraint flight_field_kind_ck check (kind in ('scalar', 'text', 'object', 'collection'))
);

comment on table flight_field is 'SIS tags of a flight record and where they go (contract 1, FS-6.1).';
comment on column flight_field.tag is 'SIS tag, upper case';
comment on column flight_field.kind is 'scalar | text (column), object (prefixed columns), collection (detail table)';
comment on column flight_field.target is 'column, column prefix or detail table';
comment on column flight_field.width is 'characters a value may have; key TEXT of an object or item: 1000';
comment on column flight_field.seq_tag is 'sequence attribute of a collection, stored in source_seq (FS-5.2-8)';
comment on column flight_field.match_tag is 'item key by which APPLY finds the entry (D12)';
comment on column flight_field.max_items is 'most items of a collection in one record (FS-3.1-1); null = no limit';
comment on column flight_field.attrs is 'keys of an object or of a collection item; the column is the key in lower case (after the prefix of an object), the sequence attribute goes to source_seq';

create table wire_ignored_field (
    tag varchar(4) not null,
    why varchar(200) not null,
    constraint wire_ignored_field_pk primary key (tag)
);

comment on table wire_ignored_field is 'Tags that are known to be out of scope: not stored, counted by name in the result (D10, FS-1-7).';
comment on column wire_ignored_field.tag is 'SIS tag';
comment on column wire_ignored_field.why is 'reason';

create table ignore_rule (
    type varchar(20) not null,
    styp varchar(20) not null,
    constraint ignore_rule_pk primary key (type, styp),
    constraint ignore_rule_upper_ck check (type = upper(type) and styp = upper(styp))
);

comment on table ignore_rule is 'Kinds that are skipped before identity (US-04). Matched in any case.';
comment on column ignore_rule.type is 'TYPE, upper case';
comment on column ignore_rule.styp is 'STYP, upper case, or * for any';

create table flop_kind (
    styp            varchar(20) not null,
    keys            text[] not null,
    collection_mode varchar(10) not null default 'REPLACE',
    on_missing      varchar(10) not null default 'CREATE',
    notify          boolean not null default true,
    enabled         boolean not null default true,
    origin          varchar(10) not null,
    constraint flop_kind_pk primary key (styp),
    constraint flop_kind_mode_ck check (collection_mode in ('REPLACE', 'APPLY')),
    constraint flop_kind_missing_ck check (on_missing in ('CREATE', 'IGNORE')),
    constraint flop_kind_origin_ck check (origin in ('source', 'assumed'))
);

comment on table flop_kind is 'Dynamic event kinds (FLOP subtypes) and their rules (US-05, D12, D13, D37).';
comment on column flop_kind.styp is 'FLOP subtype, exactly as on the wire';
comment on column flop_kind.keys is 'tags of which a record must carry at least one; empty = the FLID alone counts (FDEL)';
comment on column flop_kind.collection_mode is 'REPLACE the set, or APPLY item by item (D12)';
comment on column flop_kind.on_missing is 'CREATE the flight, or IGNORE the record, when there is no such flight (D13)';
comment on column flop_kind.notify is 'whether a NOTICE goes to KAFKA:msg';
comment on column flop_kind.enabled is 'a disabled kind is UNSUPPORTED';
comment on column flop_kind.origin is 'source = named by the source documents; assumed = until the site confirms';

create table error_class (
    sqlstate_prefix varchar(5) not null,
    error_class     varchar(12) not null,
    treatment       varchar(5) not null,
    meaning         varchar(200) not null,
    constraint error_class_pk primary key (sqlstate_prefix),
    constraint error_class_class_ck check (error_class in ('MALFORMED', 'UNSUPPORTED', 'INFRA')),
    constraint error_class_treatment_ck check (treatment in ('dead', 'retry', 'wait', 'stop'))
);

comment on table error_class is 'What a SQLSTATE means for the message at the head (D14). The longest matching prefix decides.';
comment on column error_class.sqlstate_prefix is 'SQLSTATE or its beginning; empty = every other';
comment on column error_class.error_class is 'MALFORMED | UNSUPPORTED | INFRA';
comment on column error_class.treatment is 'dead = DEAD at once; retry = charges an attempt; wait = no attempt charged; stop = the pump stops, nothing is recorded';
comment on column error_class.meaning is 'plain words';
