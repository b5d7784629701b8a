-- What somebody may do to the schema msgx, each with the one line that verify then has; nothing = none.

-- table flight_gate: row security differs
alter table flight_gate enable row level security;

-- table flight_belt: row security differs
alter table flight_belt force row level security;

-- policy flight_chute.p: definition added
create policy p on flight_chute using (false);

-- rule flight_delay.r: definition added
create rule r as on insert to flight_delay do instead nothing;

-- rule queue_head.r: definition added
create rule r as on insert to queue_head do instead nothing;

-- table loop_status: definition differs
alter table loop_status set unlogged;

-- table flight_tombstone: child public.heir added
create table public.heir () inherits (flight_tombstone);

-- column flight_checkin.flid: grant msgx_report SELECT added
grant select (flid) on flight_checkin to msgx_report;

-- table schd_gen: grant msgx_operator SELECT WITH GRANT OPTION added
grant select on schd_gen to msgx_operator with grant option;

-- table schd_gen_flid: grant OWNER INSERT missing
revoke insert on schd_gen_flid from msgx_owner;

-- type flight_change: grant PUBLIC USAGE missing
revoke usage on type flight_change from public;

-- schema msgx: grant PUBLIC USAGE added
grant usage on schema msgx to public;

-- sequence operator_audit_audit_id_seq: grant msgx_report USAGE added
grant usage on sequence operator_audit_audit_id_seq to msgx_report;

-- trigger flight_schd.t: definition added
create trigger t before insert on flight_schd for each row execute function suppress_redundant_updates_trigger();

-- constraint error_class.error_class_class_ck: definition differs
alter table error_class drop constraint error_class_class_ck;
alter table error_class add constraint error_class_class_ck check (error_class in ('MALFORMED', 'UNSUPPORTED', 'INFRA')) not valid;

-- index flight_schd_maid_ix: definition differs
update pg_index set indisvalid = false where indexrelid = 'flight_schd_maid_ix'::regclass;

-- constraint message_raw.message_raw_pk: definition differs
update pg_index set indisvalid = false where indexrelid = 'message_raw_pk'::regclass;

-- constraint message_identity.message_identity_pk: definition missing
alter table message_identity drop constraint message_identity_pk;

-- column flight_gate.gctm: definition differs
alter table flight_gate alter gctm type varchar(200) collate "C";

-- column flight_belt.made: definition added
alter table flight_belt add made text generated always as ('x') stored;

-- sequence setting_history_history_id_seq: definition differs
alter table setting_history alter history_id set cache 20;

-- column outbox_entry.x: definition added
alter type outbox_entry add attribute x integer;

-- type outbox_entry: comment differs
comment on type outbox_entry is 'x';

-- table flight_chute: owner differs
alter table flight_chute owner to pg_monitor;

-- table inbox_gap: owner differs
alter table inbox_gap owner to pg_monitor;

-- view delivery_lag: owner differs
alter view delivery_lag owner to pg_monitor;

-- routine contract_version(): owner differs
alter function contract_version() owner to pg_monitor;

-- default acl for role msgx_owner in schema msgx on tables: definition added
alter default privileges for role msgx_owner in schema msgx grant select on tables to public;

-- sequence one: definition added
create sequence one;

-- table extra: definition added
create table extra (a serial primary key, b text);
create index on extra (b);
comment on column extra.a is 'x';

-- view seen: definition added
create view seen as select 1 as a;
grant select (a) on seen to msgx_report;

-- materialized view kept: definition added
create materialized view kept as select 1 as a;

-- foreign table far: definition added
create foreign data wrapper msgx_test;
create server msgx_test foreign data wrapper msgx_test;
create foreign table far (a integer) server msgx_test;

-- type colour: definition added
create type colour as enum ('red');

-- type small: definition added
create domain small as integer;

-- routine sum_of(integer): definition added
create aggregate sum_of(integer) (sfunc = int4pl, stype = integer);

-- routine nothing(): definition added
create procedure nothing() language sql as 'select 1';

-- operator +(pg_catalog.text,pg_catalog.text): definition added
create operator + (leftarg = text, rightarg = text, function = textcat);

-- collation flight_gate: definition added
create collation flight_gate from "C";

-- text search configuration words: definition added
create text search configuration words (copy = simple);

-- extension pgtap: definition added
create extension pgtap schema msgx;

-- view health: definition missing
drop view health;

-- migration V9998__x.sql: definition added
insert into schema_history (kind, name, checksum, applied_at, applied_by) values ('versioned', 'V9998__x.sql', repeat('0', 64), now(), 'me');

-- row error_class(22001): definition missing
delete from error_class where sqlstate_prefix = '22001';

-- row error_class(22003): definition differs
update error_class set treatment = 'stop' where sqlstate_prefix = '22003';

-- row error_class(ZZ): definition added
insert into error_class values ('ZZ', 'INFRA', 'wait', 'x');

-- row flight_field(FLNO): definition differs
update flight_field set width = 7 where tag = 'FLNO';

-- row flop_kind(GTDT): definition missing
delete from flop_kind where styp = 'GTDT';

-- row flop_kind(CKDT): definition differs
update flop_kind set keys = '{}' where styp = 'CKDT';

-- row ignore_rule(LDM, *): definition missing
delete from ignore_rule where type = 'LDM';

-- row wire_ignored_field(FFID): definition missing
delete from wire_ignored_field where tag = 'FFID';

-- row setting(wire.max_bytes): definition missing
delete from setting where name = 'wire.max_bytes';

-- row setting(snapshot.reclaim): definition differs
update setting set pattern = '.*' where name = 'snapshot.reclaim';

-- row pipeline_lock(FLIGHT_SCHD_WRITER): definition missing
delete from pipeline_lock;

-- row delivery_target(MAILBOX): definition missing
delete from delivery_target where target = 'MAILBOX';

-- nothing
update setting set value = 'keep' where name = 'snapshot.absent_flight';

-- nothing
update flop_kind set enabled = true, on_missing = 'IGNORE', collection_mode = 'APPLY', origin = 'source' where styp = 'TOBT';

-- nothing
insert into flop_kind values ('FTYP', '{FLTY}', 'REPLACE', 'IGNORE', true, true, 'assumed');

-- nothing
insert into ignore_rule values ('CHAT', '*');

-- nothing
insert into wire_ignored_field values ('SEAT', 'not used here');
