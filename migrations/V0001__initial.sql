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
    constraint inbox_cursor_pk primary key (source)
);

comment on table inbox_cursor is 'Where collecting messages stands, per source (US-01).';
comment on column inbox_cursor.source is 'replay, or the name of a mailbox';
comment on column inbox_cursor.watermark is 'every id up to here has been seen';
comment on column inbox_cursor.id_offset is 'added to a mailbox id (D38)';
comment on column inbox_cursor.scanned_at is 'last scan';
comment on column inbox_cursor.rescan_from is 'next id of the compensation scan';
comment on column inbox_cursor.failures is 'failed scans in a row';

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
    constraint proc_state_pk primary key (message_id),
    constraint proc_state_status_ck check (status in ('PENDING', 'FAILED', 'SUCCEEDED', 'SKIPPED', 'DEAD')),
    constraint proc_state_class_ck check (error_class in ('MALFORMED', 'CODEC_ERROR', 'UNSUPPORTED', 'INFRA', 'EXHAUSTED')),
    constraint proc_state_backfill_ck check (backfill_status in ('NONE', 'PENDING', 'CLAIMED', 'DONE')),
    constraint proc_state_terminal_ck check ((status in ('PENDING', 'FAILED')) = (processed_at is null))
) with (fillfactor = 70);

create index proc_state_head_ix on proc_state (message_id) where status in ('PENDING', 'FAILED');
create index proc_state_dead_ix on proc_state (message_id) where status = 'DEAD';

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
-- The flight: scalar main table, nine detail tables, tombstones
-- Current shape. A change comes as a new file in migrations/ and is repeated here (see docs/dba.md).

create table flight_schd (
    flid            varchar(20) not null,
    alcd            varchar(200),
    alsc            varchar(200),
    flno            varchar(200),
    mvin            varchar(200),
    sodt            varchar(200),
    std             varchar(200),
    flty            varchar(200),
    flin            varchar(200),
    acft            varchar(200),
    reno            varchar(200),
    taop            varchar(200),
    tafl            varchar(200),
    taid            varchar(200),
    trml            varchar(200),
    maxp            varchar(200),
    csop            varchar(200),
    csft            varchar(200),
    maid            varchar(200),
    estt            varchar(200),
    actt            varchar(200),
    stnd            varchar(200),
    abdg            varchar(200),
    phag            varchar(200),
    fhag            varchar(200),
    mhag            varchar(200),
    cncl            varchar(200),
    remc            varchar(1000),
    exsc            varchar(200),
    exsr            varchar(200),
    ftss            varchar(200),
    pedt            varchar(200),
    padt            varchar(200),
    neat            varchar(200),
    naat            varchar(200),
    runw            varchar(200),
    eobt            varchar(200),
    tobt            varchar(200),
    cobt            varchar(200),
    ctot            varchar(200),
    iest            varchar(200),
    vipp            varchar(200),
    vipr            varchar(200),
    lbno            varchar(200),
    lbwt            varchar(200),
    paxc            varchar(200),
    egsr            varchar(200),
    egst            varchar(200),
    fdiv_ddes       varchar(200),
    fdiv_ddir       varchar(200),
    fdiv_text       varchar(1000),
    fret_reid       varchar(200),
    fret_text       varchar(1000),
    flab_ares       varchar(200),
    flab_text       varchar(1000),
    srvt_text       varchar(30000),
    vipf_text       varchar(30000),
    mafl_text       varchar(30000),
    fday            date,
    state_version   bigint not null,
    last_message_id bigint not null,
    high_message_id bigint not null,
    last_dttm       varchar(14),
    created_at      timestamptz not null,
    updated_at      timestamptz not null,
    constraint flight_schd_pk primary key (flid)
) with (fillfactor = 70);

create index flight_schd_maid_ix on flight_schd (maid) where maid <> '';

comment on table flight_schd is 'Current state of each flight, one row per FLID (FS-3.2-1). Times are local strings as sent (FS-6.3-2). Empty text counts as absent outside storage (D11).';
comment on column flight_schd.flid is 'flight id given by AODB; identity of the flight (FS-0-5)';
comment on column flight_schd.alcd is 'ALCD: airline code';
comment on column flight_schd.alsc is 'ALSC: airline sub-code';
comment on column flight_schd.flno is 'FLNO: flight number; has no fixed relation to FLID (FS-0-6)';
comment on column flight_schd.mvin is 'MVIN: movement: A = arrival, D = departure';
comment on column flight_schd.sodt is 'SODT: scheduled operating date and time, DDMONYYHHMM airport local; day source of a plan without header day (D9)';
comment on column flight_schd.std is 'STD: scheduled time, DDMONYYHHMM airport local, as sent';
comment on column flight_schd.flty is 'FLTY: flight type';
comment on column flight_schd.flin is 'FLIN: domestic/international indicator';
comment on column flight_schd.acft is 'ACFT: aircraft type';
comment on column flight_schd.reno is 'RENO: aircraft registration';
comment on column flight_schd.taop is 'TAOP: carrier of the connecting flight that leaves this airport; arrivals only (FS-3.2-10)';
comment on column flight_schd.tafl is 'TAFL: flight number of the connecting flight; arrivals only (FS-3.2-10)';
comment on column flight_schd.taid is 'TAID: FLID of the connecting flight; arrivals only (FS-3.2-10)';
comment on column flight_schd.trml is 'TRML: terminal';
comment on column flight_schd.maxp is 'MAXP: maximum passengers';
comment on column flight_schd.csop is 'CSOP: codeshare operator';
comment on column flight_schd.csft is 'CSFT: codeshare flight number';
comment on column flight_schd.maid is 'MAID: FLID of the main flight of a shared (codeshare) flight; own FLID or empty = no main (D23)';
comment on column flight_schd.estt is 'ESTT: estimated time, as sent';
comment on column flight_schd.actt is 'ACTT: actual time: ATA of an arrival, ATD of a departure (FS-1-8), as sent';
comment on column flight_schd.stnd is 'STND: current stand';
comment on column flight_schd.abdg is 'ABDG: bridge of the current stand';
comment on column flight_schd.phag is 'PHAG: passenger handling agent';
comment on column flight_schd.fhag is 'FHAG: flight handling agent';
comment on column flight_schd.mhag is 'MHAG: maintenance handling agent';
comment on column flight_schd.cncl is 'CNCL: cancellation time; empty = not cancelled (D11)';
comment on column flight_schd.remc is 'REMC: remark, up to 1000 characters';
comment on column flight_schd.exsc is 'EXSC: exception status code';
comment on column flight_schd.exsr is 'EXSR: exception status reason';
comment on column flight_schd.ftss is 'FTSS: flight status';
comment on column flight_schd.pedt is 'PEDT: estimated departure at the previous station';
comment on column flight_schd.padt is 'PADT: actual departure at the previous station';
comment on column flight_schd.neat is 'NEAT: estimated arrival at the next station';
comment on column flight_schd.naat is 'NAAT: actual arrival at the next station';
comment on column flight_schd.runw is 'RUNW: runway';
comment on column flight_schd.eobt is 'EOBT: estimated off-block time';
comment on column flight_schd.tobt is 'TOBT: target off-block time';
comment on column flight_schd.cobt is 'COBT: calculated off-block time';
comment on column flight_schd.ctot is 'CTOT: calculated take-off time';
comment on column flight_schd.iest is 'IEST: initial estimated time';
comment on column flight_schd.vipp is 'VIPP: VIP place';
comment on column flight_schd.vipr is 'VIPR: VIP remark';
comment on column flight_schd.lbno is 'LBNO: baggage pieces';
comment on column flight_schd.lbwt is 'LBWT: baggage weight';
comment on column flight_schd.paxc is 'PAXC: passenger count';
comment on column flight_schd.egsr is 'EGSR: engine start request';
comment on column flight_schd.egst is 'EGST: engine start';
comment on column flight_schd.fdiv_ddes is 'FDIV DDES: diversion destination; the object is set or cleared as a whole (FS-6.2-4)';
comment on column flight_schd.fdiv_ddir is 'FDIV DDIR: diversion direction; the object is set or cleared as a whole (FS-6.2-4)';
comment on column flight_schd.fdiv_text is 'FDIV TEXT: diversion text; the object is set or cleared as a whole (FS-6.2-4)';
comment on column flight_schd.fret_reid is 'FRET REID: return id; the object is set or cleared as a whole (FS-6.2-4)';
comment on column flight_schd.fret_text is 'FRET TEXT: return text; the object is set or cleared as a whole (FS-6.2-4)';
comment on column flight_schd.flab_ares is 'FLAB ARES: abort reason; the object is set or cleared as a whole (FS-6.2-4)';
comment on column flight_schd.flab_text is 'FLAB TEXT: abort text; the object is set or cleared as a whole (FS-6.2-4)';
comment on column flight_schd.srvt_text is 'SRVT: services; text as sent or canonical JSON (D28)';
comment on column flight_schd.vipf_text is 'VIPF: VIP; text as sent or canonical JSON (D28)';
comment on column flight_schd.mafl_text is 'MAFL: shared flights of this main flight, a list of FLNO tokens (D23); text as sent or canonical JSON (D28)';
comment on column flight_schd.fday is 'operating day whose plan manages membership and deletion of the flight (FS-0-10); null = not yet in a plan';
comment on column flight_schd.state_version is 'version of this flight, +1 with every write, continued after deletion (D18)';
comment on column flight_schd.last_message_id is 'message that wrote last';
comment on column flight_schd.high_message_id is 'highest message id that ever wrote (D26, D29)';
comment on column flight_schd.last_dttm is 'DTTM of the last writing message when it is a full yyyyMMddHHmmss (D33)';
comment on column flight_schd.created_at is 'instant of the first write';
comment on column flight_schd.updated_at is 'instant of the last write';

create table flight_gate (
    flid           varchar(20) not null,
    ordinal        integer not null,
    source_seq     varchar(200),
    gate           varchar(200),
    gtyp           varchar(200),
    pgot           varchar(200),
    pgct           varchar(200),
    gotm           varchar(200),
    gctm           varchar(200),
    record_version bigint not null,
    created_at     timestamptz not null,
    updated_at     timestamptz not null,
    constraint flight_gate_pk primary key (flid, ordinal)
) with (fillfactor = 70);

comment on table flight_gate is 'GTDT: boarding gates (登机门), FS-6.1-1. Replaced as a whole set.';
comment on column flight_gate.flid is 'flight; no foreign key, rows are written and deleted by the engine (FS-3.3-18)';
comment on column flight_gate.ordinal is 'input order, from 1 (FS-0-14)';
comment on column flight_gate.source_seq is 'sequence attribute GTNO as sent; may be null, is not unique (FS-6.1-17)';
comment on column flight_gate.gate is 'GATE: gate';
comment on column flight_gate.gtyp is 'GTYP: gate type';
comment on column flight_gate.pgot is 'PGOT: planned gate open';
comment on column flight_gate.pgct is 'PGCT: planned gate close';
comment on column flight_gate.gotm is 'GOTM: gate opened';
comment on column flight_gate.gctm is 'GCTM: gate closed';
comment on column flight_gate.record_version is 'state_version of the flight at this write';
comment on column flight_gate.created_at is 'instant of the last rewrite (FS-6.1-17)';
comment on column flight_gate.updated_at is 'instant of the last rewrite';

create table flight_checkin (
    flid           varchar(20) not null,
    ordinal        integer not null,
    source_seq     varchar(200),
    chkc           varchar(200),
    ccls           varchar(200),
    ctyp           varchar(200),
    pcot           varchar(200),
    pcct           varchar(200),
    cotm           varchar(200),
    cctm           varchar(200),
    record_version bigint not null,
    created_at     timestamptz not null,
    updated_at     timestamptz not null,
    constraint flight_checkin_pk primary key (flid, ordinal)
) with (fillfactor = 70);

comment on table flight_checkin is 'CKDT: check-in counters (值机柜台), FS-6.1-2; the same CHKC may stand in several rows. Replaced as a whole set.';
comment on column flight_checkin.flid is 'flight; no foreign key, rows are written and deleted by the engine (FS-3.3-18)';
comment on column flight_checkin.ordinal is 'input order, from 1 (FS-0-14)';
comment on column flight_checkin.source_seq is 'sequence attribute CKNO as sent; may be null, is not unique (FS-6.1-17)';
comment on column flight_checkin.chkc is 'CHKC: counter';
comment on column flight_checkin.ccls is 'CCLS: cabin class';
comment on column flight_checkin.ctyp is 'CTYP: counter type';
comment on column flight_checkin.pcot is 'PCOT: planned open';
comment on column flight_checkin.pcct is 'PCCT: planned close';
comment on column flight_checkin.cotm is 'COTM: opened';
comment on column flight_checkin.cctm is 'CCTM: closed';
comment on column flight_checkin.record_version is 'state_version of the flight at this write';
comment on column flight_checkin.created_at is 'instant of the last rewrite (FS-6.1-17)';
comment on column flight_checkin.updated_at is 'instant of the last rewrite';

create table flight_belt (
    flid           varchar(20) not null,
    ordinal        integer not null,
    source_seq     varchar(200),
    belt           varchar(200),
    bcls           varchar(200),
    btyp           varchar(200),
    pcot           varchar(200),
    pcct           varchar(200),
    fbag           varchar(200),
    lbag           varchar(200),
    record_version bigint not null,
    created_at     timestamptz not null,
    updated_at     timestamptz not null,
    constraint flight_belt_pk primary key (flid, ordinal)
) with (fillfactor = 70);

comment on table flight_belt is 'CLDT: baggage belts (行李转盘), FS-6.1-3. Replaced as a whole set.';
comment on column flight_belt.flid is 'flight; no foreign key, rows are written and deleted by the engine (FS-3.3-18)';
comment on column flight_belt.ordinal is 'input order, from 1 (FS-0-14)';
comment on column flight_belt.source_seq is 'sequence attribute CLNO as sent; may be null, is not unique (FS-6.1-17)';
comment on column flight_belt.belt is 'BELT: belt';
comment on column flight_belt.bcls is 'BCLS: bag class';
comment on column flight_belt.btyp is 'BTYP: belt type';
comment on column flight_belt.pcot is 'PCOT: planned open';
comment on column flight_belt.pcct is 'PCCT: planned close';
comment on column flight_belt.fbag is 'FBAG: first bag';
comment on column flight_belt.lbag is 'LBAG: last bag';
comment on column flight_belt.record_version is 'state_version of the flight at this write';
comment on column flight_belt.created_at is 'instant of the last rewrite (FS-6.1-17)';
comment on column flight_belt.updated_at is 'instant of the last rewrite';

create table flight_stand_plan (
    flid           varchar(20) not null,
    ordinal        integer not null,
    source_seq     varchar(200),
    psst           varchar(200),
    stst           varchar(200),
    stet           varchar(200),
    abdg           varchar(200),
    record_version bigint not null,
    created_at     timestamptz not null,
    updated_at     timestamptz not null,
    constraint flight_stand_plan_pk primary key (flid, ordinal)
) with (fillfactor = 70);

comment on table flight_stand_plan is 'PSDT: planned stands (计划机位), FS-6.1-4. Replaced as a whole set.';
comment on column flight_stand_plan.flid is 'flight; no foreign key, rows are written and deleted by the engine (FS-3.3-18)';
comment on column flight_stand_plan.ordinal is 'input order, from 1 (FS-0-14)';
comment on column flight_stand_plan.source_seq is 'sequence attribute PSNO as sent; may be null, is not unique (FS-6.1-17)';
comment on column flight_stand_plan.psst is 'PSST: planned stand';
comment on column flight_stand_plan.stst is 'STST: start time';
comment on column flight_stand_plan.stet is 'STET: end time';
comment on column flight_stand_plan.abdg is 'ABDG: bridge of the stand';
comment on column flight_stand_plan.record_version is 'state_version of the flight at this write';
comment on column flight_stand_plan.created_at is 'instant of the last rewrite (FS-6.1-17)';
comment on column flight_stand_plan.updated_at is 'instant of the last rewrite';

create table flight_chute (
    flid           varchar(20) not null,
    ordinal        integer not null,
    source_seq     varchar(200),
    chut           varchar(200),
    ccls           varchar(200),
    ctyp           varchar(200),
    pcbt           varchar(200),
    pcet           varchar(200),
    cbtm           varchar(200),
    cetm           varchar(200),
    record_version bigint not null,
    created_at     timestamptz not null,
    updated_at     timestamptz not null,
    constraint flight_chute_pk primary key (flid, ordinal)
) with (fillfactor = 70);

comment on table flight_chute is 'CHDT: baggage chutes (行李滑槽), FS-6.1-5. Replaced as a whole set.';
comment on column flight_chute.flid is 'flight; no foreign key, rows are written and deleted by the engine (FS-3.3-18)';
comment on column flight_chute.ordinal is 'input order, from 1 (FS-0-14)';
comment on column flight_chute.source_seq is 'sequence attribute CHNO as sent; may be null, is not unique (FS-6.1-17)';
comment on column flight_chute.chut is 'CHUT: chute';
comment on column flight_chute.ccls is 'CCLS: cabin class';
comment on column flight_chute.ctyp is 'CTYP: chute type';
comment on column flight_chute.pcbt is 'PCBT: planned begin';
comment on column flight_chute.pcet is 'PCET: planned end';
comment on column flight_chute.cbtm is 'CBTM: begun';
comment on column flight_chute.cetm is 'CETM: ended';
comment on column flight_chute.record_version is 'state_version of the flight at this write';
comment on column flight_chute.created_at is 'instant of the last rewrite (FS-6.1-17)';
comment on column flight_chute.updated_at is 'instant of the last rewrite';

create table flight_delay (
    flid           varchar(20) not null,
    ordinal        integer not null,
    source_seq     varchar(200),
    code           varchar(200),
    strt           varchar(200),
    dura           varchar(200),
    text           varchar(1000),
    record_version bigint not null,
    created_at     timestamptz not null,
    updated_at     timestamptz not null,
    constraint flight_delay_pk primary key (flid, ordinal)
) with (fillfactor = 70);

comment on table flight_delay is 'DELY: delays (延误), FS-6.1-6; no sequence attribute. Replaced as a whole set.';
comment on column flight_delay.flid is 'flight; no foreign key, rows are written and deleted by the engine (FS-3.3-18)';
comment on column flight_delay.ordinal is 'input order, from 1 (FS-0-14)';
comment on column flight_delay.source_seq is 'always null: no sequence attribute';
comment on column flight_delay.code is 'CODE: delay code';
comment on column flight_delay.strt is 'STRT: start time';
comment on column flight_delay.dura is 'DURA: duration HHMM';
comment on column flight_delay.text is 'TEXT: delay text';
comment on column flight_delay.record_version is 'state_version of the flight at this write';
comment on column flight_delay.created_at is 'instant of the last rewrite (FS-6.1-17)';
comment on column flight_delay.updated_at is 'instant of the last rewrite';

create table flight_bridge_op (
    flid           varchar(20) not null,
    ordinal        integer not null,
    source_seq     varchar(200),
    abdg           varchar(200),
    abop           varchar(200),
    aotm           varchar(200),
    record_version bigint not null,
    created_at     timestamptz not null,
    updated_at     timestamptz not null,
    constraint flight_bridge_op_pk primary key (flid, ordinal)
) with (fillfactor = 70);

comment on table flight_bridge_op is 'ABTM: bridge docking and undocking (靠撤桥), FS-6.1-7. Replaced as a whole set.';
comment on column flight_bridge_op.flid is 'flight; no foreign key, rows are written and deleted by the engine (FS-3.3-18)';
comment on column flight_bridge_op.ordinal is 'input order, from 1 (FS-0-14)';
comment on column flight_bridge_op.source_seq is 'sequence attribute ASNO as sent; may be null, is not unique (FS-6.1-17)';
comment on column flight_bridge_op.abdg is 'ABDG: bridge';
comment on column flight_bridge_op.abop is 'ABOP: operation';
comment on column flight_bridge_op.aotm is 'AOTM: operation time';
comment on column flight_bridge_op.record_version is 'state_version of the flight at this write';
comment on column flight_bridge_op.created_at is 'instant of the last rewrite (FS-6.1-17)';
comment on column flight_bridge_op.updated_at is 'instant of the last rewrite';

create table flight_chock_op (
    flid           varchar(20) not null,
    ordinal        integer not null,
    source_seq     varchar(200),
    chid           varchar(200),
    chtm           varchar(200),
    chst           varchar(200),
    record_version bigint not null,
    created_at     timestamptz not null,
    updated_at     timestamptz not null,
    constraint flight_chock_op_pk primary key (flid, ordinal)
) with (fillfactor = 70);

comment on table flight_chock_op is 'CHOT: chocks (轮挡), FS-6.1-8. Replaced as a whole set.';
comment on column flight_chock_op.flid is 'flight; no foreign key, rows are written and deleted by the engine (FS-3.3-18)';
comment on column flight_chock_op.ordinal is 'input order, from 1 (FS-0-14)';
comment on column flight_chock_op.source_seq is 'sequence attribute CSNO as sent; may be null, is not unique (FS-6.1-17)';
comment on column flight_chock_op.chid is 'CHID: ON or OFF, a business attribute';
comment on column flight_chock_op.chtm is 'CHTM: operation time';
comment on column flight_chock_op.chst is 'CHST: stand';
comment on column flight_chock_op.record_version is 'state_version of the flight at this write';
comment on column flight_chock_op.created_at is 'instant of the last rewrite (FS-6.1-17)';
comment on column flight_chock_op.updated_at is 'instant of the last rewrite';

create table flight_route_point (
    flid           varchar(20) not null,
    route_kind     varchar(4) not null,
    ordinal        integer not null,
    source_seq     varchar(200),
    apcd           varchar(200),
    scat           varchar(200),
    scdt           varchar(200),
    sadc           varchar(200),
    sddc           varchar(200),
    record_version bigint not null,
    created_at     timestamptz not null,
    updated_at     timestamptz not null,
    constraint flight_route_point_pk primary key (flid, route_kind, ordinal),
    constraint flight_route_point_kind_ck check (route_kind in ('ROUT', 'ERUT'))
) with (fillfactor = 70);

comment on table flight_route_point is 'ROUT and ERUT: planned and extended route (计划/扩展航路), FS-6.1-9, FS-6.1-10; one table, two kinds (D22). Replaced as a whole set.';
comment on column flight_route_point.flid is 'flight; no foreign key, rows are written and deleted by the engine (FS-3.3-18)';
comment on column flight_route_point.route_kind is 'ROUT | ERUT';
comment on column flight_route_point.ordinal is 'input order, from 1 (FS-0-14)';
comment on column flight_route_point.source_seq is 'sequence attribute RTNO as sent; may be null, is not unique (FS-6.1-17)';
comment on column flight_route_point.apcd is 'APCD: airport';
comment on column flight_route_point.scat is 'SCAT: scheduled arrival';
comment on column flight_route_point.scdt is 'SCDT: scheduled departure';
comment on column flight_route_point.sadc is 'SADC: actual arrival';
comment on column flight_route_point.sddc is 'SDDC: actual departure';
comment on column flight_route_point.record_version is 'state_version of the flight at this write';
comment on column flight_route_point.created_at is 'instant of the last rewrite (FS-6.1-17)';
comment on column flight_route_point.updated_at is 'instant of the last rewrite';

create table flight_tombstone (
    flid          varchar(20) not null,
    state_version bigint not null,
    deleted_at    timestamptz not null,
    message_id    bigint not null,
    constraint flight_tombstone_pk primary key (flid)
);

comment on table flight_tombstone is 'Last deletion of each FLID, kept for good so that versions go on (D18).';
comment on column flight_tombstone.flid is 'deleted flight';
comment on column flight_tombstone.state_version is 'version taken by the deletion';
comment on column flight_tombstone.deleted_at is 'instant';
comment on column flight_tombstone.message_id is 'message that deleted it';

create type flight_change as (
    ord           integer,
    flid          varchar(20),
    is_new        boolean,
    state_version bigint,
    fday          date,
    vals          jsonb,
    sets          jsonb,
    carried       text[]
);

comment on type flight_change is 'One flight to write, commands resolved (FS-5.2). ord: package order; state_version: the version after the write; fday: new day, null = keep; vals: tag -> value of scalars, texts and objects, null = Clear; sets: tag -> items of collections, [] = emptied; an absent tag is unchanged; carried: tags the record carries, for notices (null in a plan).';
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
    constraint msg_event_pk primary key (event_id),
    constraint msg_event_target_ck check (target in ('KAFKA:msg', 'KAFKA:schd')),
    constraint msg_event_kind_ck check ((target = 'KAFKA:msg' and kind = 'NOTICE') or (target = 'KAFKA:schd' and kind in ('STATE', 'TOMBSTONE'))),
    constraint msg_event_status_ck check (status in ('PENDING', 'SENT', 'DEAD'))
) with (fillfactor = 80);

create index msg_event_notice_ix on msg_event (event_id) where status = 'PENDING' and target = 'KAFKA:msg';
create index msg_event_flid_ix on msg_event (flid, event_id) where status = 'PENDING' and target = 'KAFKA:schd';

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

create type outbox_entry as (
    target        varchar(20),
    kind          varchar(10),
    flid          varchar(20),
    state_version bigint,
    payload       jsonb
);

comment on type outbox_entry is 'One event to add to msg_event, in the order of the array that carries it (D41).';
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
-- First rows of the catalogues and settings.

insert into flight_field (tag, kind, target, width, seq_tag, match_tag, max_items, attrs) values
    ('ALCD', 'scalar', 'alcd', 200, null, null, null, null),
    ('ALSC', 'scalar', 'alsc', 200, null, null, null, null),
    ('FLNO', 'scalar', 'flno', 200, null, null, null, null),
    ('MVIN', 'scalar', 'mvin', 200, null, null, null, null),
    ('SODT', 'scalar', 'sodt', 200, null, null, null, null),
    ('STD', 'scalar', 'std', 200, null, null, null, null),
    ('FLTY', 'scalar', 'flty', 200, null, null, null, null),
    ('FLIN', 'scalar', 'flin', 200, null, null, null, null),
    ('ACFT', 'scalar', 'acft', 200, null, null, null, null),
    ('RENO', 'scalar', 'reno', 200, null, null, null, null),
    ('TAOP', 'scalar', 'taop', 200, null, null, null, null),
    ('TAFL', 'scalar', 'tafl', 200, null, null, null, null),
    ('TAID', 'scalar', 'taid', 200, null, null, null, null),
    ('TRML', 'scalar', 'trml', 200, null, null, null, null),
    ('MAXP', 'scalar', 'maxp', 200, null, null, null, null),
    ('CSOP', 'scalar', 'csop', 200, null, null, null, null),
    ('CSFT', 'scalar', 'csft', 200, null, null, null, null),
    ('MAID', 'scalar', 'maid', 200, null, null, null, null),
    ('ESTT', 'scalar', 'estt', 200, null, null, null, null),
    ('ACTT', 'scalar', 'actt', 200, null, null, null, null),
    ('STND', 'scalar', 'stnd', 200, null, null, null, null),
    ('ABDG', 'scalar', 'abdg', 200, null, null, null, null),
    ('PHAG', 'scalar', 'phag', 200, null, null, null, null),
    ('FHAG', 'scalar', 'fhag', 200, null, null, null, null),
    ('MHAG', 'scalar', 'mhag', 200, null, null, null, null),
    ('CNCL', 'scalar', 'cncl', 200, null, null, null, null),
    ('REMC', 'scalar', 'remc', 1000, null, null, null, null),
    ('EXSC', 'scalar', 'exsc', 200, null, null, null, null),
    ('EXSR', 'scalar', 'exsr', 200, null, null, null, null),
    ('FTSS', 'scalar', 'ftss', 200, null, null, null, null),
    ('PEDT', 'scalar', 'pedt', 200, null, null, null, null),
    ('PADT', 'scalar', 'padt', 200, null, null, null, null),
    ('NEAT', 'scalar', 'neat', 200, null, null, null, null),
    ('NAAT', 'scalar', 'naat', 200, null, null, null, null),
    ('RUNW', 'scalar', 'runw', 200, null, null, null, null),
    ('EOBT', 'scalar', 'eobt', 200, null, null, null, null),
    ('TOBT', 'scalar', 'tobt', 200, null, null, null, null),
    ('COBT', 'scalar', 'cobt', 200, null, null, null, null),
    ('CTOT', 'scalar', 'ctot', 200, null, null, null, null),
    ('IEST', 'scalar', 'iest', 200, null, null, null, null),
    ('VIPP', 'scalar', 'vipp', 200, null, null, null, null),
    ('VIPR', 'scalar', 'vipr', 200, null, null, null, null),
    ('LBNO', 'scalar', 'lbno', 200, null, null, null, null),
    ('LBWT', 'scalar', 'lbwt', 200, null, null, null, null),
    ('PAXC', 'scalar', 'paxc', 200, null, null, null, null),
    ('EGSR', 'scalar', 'egsr', 200, null, null, null, null),
    ('EGST', 'scalar', 'egst', 200, null, null, null, null),
    ('SRVT', 'text', 'srvt_text', 30000, null, null, null, null),
    ('VIPF', 'text', 'vipf_text', 30000, null, null, null, null),
    ('MAFL', 'text', 'mafl_text', 30000, null, null, null, null),
    ('FDIV', 'object', 'fdiv_', 200, null, null, null, '{DDES,DDIR,TEXT}'),
    ('FRET', 'object', 'fret_', 200, null, null, null, '{REID,TEXT}'),
    ('FLAB', 'object', 'flab_', 200, null, null, null, '{ARES,TEXT}'),
    ('GTDT', 'collection', 'flight_gate', 200, 'GTNO', 'GTNO', 99, '{GTNO,GATE,GTYP,PGOT,PGCT,GOTM,GCTM}'),
    ('CKDT', 'collection', 'flight_checkin', 200, 'CKNO', 'CKNO', 99, '{CKNO,CHKC,CCLS,CTYP,PCOT,PCCT,COTM,CCTM}'),
    ('CLDT', 'collection', 'flight_belt', 200, 'CLNO', 'CLNO', 99, '{CLNO,BELT,BCLS,BTYP,PCOT,PCCT,FBAG,LBAG}'),
    ('PSDT', 'collection', 'flight_stand_plan', 200, 'PSNO', 'PSNO', 9, '{PSNO,PSST,STST,STET,ABDG}'),
    ('CHDT', 'collection', 'flight_chute', 200, 'CHNO', 'CHNO', null, '{CHNO,CHUT,CCLS,CTYP,PCBT,PCET,CBTM,CETM}'),
    ('DELY', 'collection', 'flight_delay', 200, null, 'CODE', null, '{CODE,STRT,DURA,TEXT}'),
    ('ABTM', 'collection', 'flight_bridge_op', 200, 'ASNO', 'ASNO', null, '{ASNO,ABDG,ABOP,AOTM}'),
    ('CHOT', 'collection', 'flight_chock_op', 200, 'CSNO', 'CSNO', null, '{CSNO,CHID,CHTM,CHST}'),
    ('ROUT', 'collection', 'flight_route_point', 200, 'RTNO', 'RTNO', null, '{RTNO,APCD,SCAT,SCDT,SADC,SDDC}'),
    ('ERUT', 'collection', 'flight_route_point', 200, 'RTNO', 'RTNO', null, '{RTNO,APCD,SCAT,SCDT,SADC,SDDC}');

insert into wire_ignored_field (tag, why) values
    ('BOTM', 'boarding, out of scope (FS-1-7)'),
    ('LACL', 'boarding, out of scope (FS-1-7)'),
    ('FINT', 'boarding, out of scope (FS-1-7)'),
    ('APPT', 'boarding, out of scope (FS-1-7)'),
    ('FFID', 'id of another system, not used (D10)');

insert into ignore_rule (type, styp) values
    ('LDM', '*'),
    ('REGN', '*'),
    ('RSTA', '*'),
    ('EROR', '*'),
    ('FLOP', 'BOTM'),
    ('FLOP', 'LACL'),
    ('FLOP', 'FINT'),
    ('FLOP', 'APPT');

insert into flop_kind (styp, keys, on_missing, enabled, origin) values
    ('GTDT', '{GTDT}', 'CREATE', true, 'source'),
    ('CKDT', '{CKDT}', 'CREATE', true, 'source'),
    ('CLDT', '{CLDT}', 'CREATE', true, 'source'),
    ('PSDT', '{PSDT}', 'CREATE', true, 'source'),
    ('CHDT', '{CHDT}', 'CREATE', true, 'source'),
    ('DELY', '{DELY}', 'CREATE', true, 'source'),
    ('ABTM', '{ABTM}', 'CREATE', true, 'source'),
    ('CHOT', '{CHOT}', 'CREATE', true, 'source'),
    ('ROUT', '{ROUT}', 'CREATE', true, 'source'),
    ('ERUT', '{ERUT}', 'CREATE', true, 'source'),
    ('FDIV', '{FDIV}', 'CREATE', true, 'source'),
    ('FRET', '{FRET}', 'CREATE', true, 'source'),
    ('FLAB', '{FLAB}', 'CREATE', true, 'source'),
    ('SRVT', '{SRVT}', 'CREATE', true, 'source'),
    ('VIPF', '{VIPF}', 'CREATE', true, 'source'),
    ('MAFL', '{MAFL}', 'CREATE', true, 'source'),
    ('CNCL', '{CNCL}', 'IGNORE', true, 'source'),
    ('FDEL', '{}', 'IGNORE', true, 'source'),
    ('ESTT', '{ESTT}', 'CREATE', true, 'assumed'),
    ('ACTT', '{ACTT}', 'CREATE', true, 'assumed'),
    ('RENO', '{RENO}', 'CREATE', true, 'assumed'),
    ('ACFT', '{ACFT}', 'CREATE', true, 'assumed'),
    ('FLTY', '{FLTY}', 'CREATE', true, 'assumed'),
    ('FLIN', '{FLIN}', 'CREATE', true, 'assumed'),
    ('TRML', '{TRML}', 'CREATE', true, 'assumed'),
    ('STND', '{STND}', 'CREATE', true, 'assumed'),
    ('TAOP', '{TAOP,TAFL,TAID}', 'CREATE', true, 'assumed'),
    ('HNAG', '{FHAG,PHAG,MHAG}', 'CREATE', true, 'assumed'),
    ('REMC', '{REMC}', 'CREATE', true, 'assumed'),
    ('MAXP', '{MAXP}', 'CREATE', false, 'assumed'),
    ('VIPP', '{VIPP,VIPR}', 'CREATE', false, 'assumed'),
    ('EXSS', '{EXSC,EXSR}', 'CREATE', false, 'assumed'),
    ('FTSS', '{FTSS}', 'CREATE', false, 'assumed'),
    ('PEDT', '{PEDT}', 'CREATE', false, 'assumed'),
    ('PADT', '{PADT}', 'CREATE', false, 'assumed'),
    ('NEAT', '{NEAT}', 'CREATE', false, 'assumed'),
    ('NAAT', '{NAAT}', 'CREATE', false, 'assumed'),
    ('RUNW', '{RUNW}', 'CREATE', false, 'assumed'),
    ('EOBT', '{EOBT}', 'CREATE', false, 'assumed'),
    ('TOBT', '{TOBT}', 'CREATE', false, 'assumed'),
    ('COBT', '{COBT}', 'CREATE', false, 'assumed'),
    ('CTOT', '{CTOT}', 'CREATE', false, 'assumed'),
    ('IEST', '{IEST}', 'CREATE', false, 'assumed'),
    ('EGSR', '{EGSR}', 'CREATE', false, 'assumed'),
    ('EGST', '{EGST}', 'CREATE', false, 'assumed');

insert into error_class (sqlstate_prefix, error_class, treatment, meaning) values
    ('', 'INFRA', 'retry', 'any other SQLSTATE: unexpected'),
    ('08', 'INFRA', 'wait', 'connection lost'),
    ('22001', 'MALFORMED', 'dead', 'capacity: a value is too long for its column'),
    ('22003', 'MALFORMED', 'dead', 'content: a text that starts with [{ holds a number beyond all limits'),
    ('22P02', 'MALFORMED', 'dead', 'content: a text that starts with [{ is not JSON'),
    ('22P05', 'MALFORMED', 'dead', 'content: a text that starts with [{ holds a character that cannot be stored'),
    ('40', 'INFRA', 'wait', 'serialization failure, deadlock'),
    ('53', 'INFRA', 'wait', 'out of disk, memory or connections'),
    ('54', 'MALFORMED', 'dead', 'capacity: a limit of the database'),
    ('55P03', 'INFRA', 'wait', 'lock not available'),
    ('57', 'INFRA', 'wait', 'server shutdown, statement cancelled'),
    ('58', 'INFRA', 'wait', 'system error of the server'),
    ('MX0', 'INFRA', 'stop', 'the caller used a routine wrongly'),
    ('MX101', 'MALFORMED', 'dead', 'content: the message breaks a rule of its structure'),
    ('MX102', 'MALFORMED', 'dead', 'capacity: a limit of the message was passed'),
    ('MX103', 'UNSUPPORTED', 'retry', 'content: legal but not supported'),
    ('MX104', 'UNSUPPORTED', 'dead', 'content: a plan would delete too much (D32)'),
    ('MX2', 'INFRA', 'wait', 'conflict: compare-and-swap lost, retried after re-reading'),
    ('MX3', 'INFRA', 'stop', 'version or configuration'),
    ('MX4', 'INFRA', 'stop', 'this session is not the writer'),
    ('MX5', 'INFRA', 'wait', 'not yet: try again later'),
    ('MX9', 'INFRA', 'stop', 'an invariant is broken');

insert into setting (name, value, default_value, pattern, description, changed_at, changed_by) values
    ('snapshot.absent_flight', 'delete', 'delete', 'delete|keep',
     'D1: flights of the old list that a new plan omits are deleted, or stay', now(), session_user),
    ('snapshot.absent_field', 'keep', 'keep', 'keep|clear',
     'D2: a field that a plan record omits keeps its value, or is cleared', now(), session_user),
    ('snapshot.reclaim', 'latest_message_wins', 'latest_message_wins', 'latest_message_wins|protect',
     'D3: an old-day plan that lists a flight of a later day takes it back, or leaves it', now(), session_user),
    ('snapshot.recs_mismatch', 'reject', 'reject', 'reject|warn',
     'D7: RECS differs from the records received: refuse the package, or only count', now(), session_user),
    ('snapshot.max_delete_ratio', 'off', 'off', 'off|0([.][0-9]{1,4})?|1([.]0{1,4})?',
     'D32: refuse a plan that deletes more than this part of the old list (0-1) when at least 20 would go', now(), session_user),
    ('snapshot.max_flights', '10000', '10000', '[1-9][0-9]{0,5}',
     'FS-4.2-8: most records in one package', now(), session_user),
    ('schedule.day_starts_at', '00:00', '00:00', '([01][0-9]|2[0-3]):[0-5][0-9]',
     'D9: local time at which an operating day starts, HH:MM', now(), session_user),
    ('wire.unknown_field', 'reject', 'reject', 'reject|ignore',
     'D10: an unknown tag or attribute refuses the message, or is counted and left out', now(), session_user),
    ('wire.empty_scalar', 'set', 'set', 'set|clear',
     'D11: an empty scalar is stored as empty text, or clears the field', now(), session_user),
    ('wire.max_bytes', '10485760', '10485760', '[1-9][0-9]{3,8}',
     'contract 1: largest message in bytes; larger is refused as capacity', now(), session_user),
    ('request.resp_guard', 'strict', 'strict', 'strict|lenient',
     'D4: an answer without an open request is skipped, or lands like a download', now(), session_user),
    ('pipeline.max_attempts', '8', '8', '[1-9][0-9]?',
     'D14: attempts for CODEC_ERROR and INFRA before DEAD', now(), session_user),
    ('pipeline.unsupported_attempts', '3', '3', '[1-9][0-9]?',
     'D14: attempts for UNSUPPORTED before DEAD', now(), session_user),
    ('pipeline.backoff_base', '1', '1', '[1-9][0-9]{0,3}',
     'D14: first wait after a failure in seconds; doubles with every attempt', now(), session_user),
    ('pipeline.backoff_cap', '60', '60', '[1-9][0-9]{0,4}',
     'D14: longest wait in seconds', now(), session_user),
    ('identity.conflict', 'skip', 'skip', 'skip|accept_newer|dead',
     'D15: same identity, other content: skip, accept when DTTM is later, or DEAD', now(), session_user),
    ('identity.include_day_boundary', 'no', 'no', 'no|yes',
     'D16: the identity also holds the local date of DTTM', now(), session_user),
    ('identity.of_dead', 'skip', 'skip', 'skip|takeover',
     'D31: a re-sent copy of a DEAD message is skipped, or processed in its place', now(), session_user),
    ('kafka.tombstone', 'object', 'object', 'object|null',
     'D6: value of a deletion: {"DELETED":true,"FLID":...}, or null for compacted topics', now(), session_user);

insert into pipeline_lock (name, epoch, queue_floor) values ('FLIGHT_SCHD_WRITER', 1, 0);
