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
