-- Who may call what, who may read what; nobody writes tables (contract 4, engineering).
begin;
set local search_path = msgx, tap;
select plan(550);

-- Routines: the expected list, spelled out.
create temp table may (routine text, driver boolean, operator boolean, report boolean);
insert into may values
    ('acknowledge_state_loss(text,text,timestamp with time zone)', false, true, false),
    ('acquire_writer(timestamp with time zone)', true, false, false),
    ('block_target(text,uuid,text,timestamp with time zone)', true, false, false),
    ('claim_backfill(text,uuid,integer,integer,timestamp with time zone)', true, false, false),
    ('claim_events(text,uuid,integer,integer,timestamp with time zone)', true, false, false),
    ('confirm_backfill(uuid,bigint[],integer[],timestamp with time zone)', true, false, false),
    ('confirm_events(text,uuid,text[],bigint[],timestamp with time zone)', true, false, false),
    ('contract_version()', true, true, true),
    ('enqueue_messages(text,bigint[],bytea[],text[],timestamp with time zone[],timestamp with time zone)', true, false,
        false),
    ('fail_backfill(uuid,bigint[],integer[],text,timestamp with time zone)', true, false, false),
    ('fail_events(text,uuid,bigint[],text[],timestamp with time zone)', true, false, false),
    ('field_catalogue()', true, true, true),
    ('flight_projection(text[])', true, true, true),
    ('next_message(timestamp with time zone)', true, false, false),
    ('preview_events()', true, true, false),
    ('process_message(bigint,jsonb,timestamp with time zone)', true, false, false),
    ('record_failure(bigint,jsonb,jsonb,text,text,text,timestamp with time zone)', true, false, false),
    ('release_target(text,uuid,timestamp with time zone)', true, false, false),
    ('report_loop(text,text,text,timestamp with time zone)', true, false, false),
    ('republish_flights(text[],date,text,text,timestamp with time zone)', false, true, false),
    ('redeliver_events(bigint[],text,text,timestamp with time zone)', false, true, false),
    ('is_redelivered(bigint)', true, false, false),
    ('start_inbox(text,bigint,timestamp with time zone)', true, false, false),
    ('scan_inbox(text,bigint,bigint[],bigint,text[],integer,timestamp with time zone)', true, false, false),
    ('enqueue_inbox(text,bigint,bigint,bigint[],bytea[],text[],timestamp without time zone[],timestamp with time zone)',
        true, false, false),
    ('rescan_inbox(text,bigint[],timestamp without time zone[],bigint,timestamp with time zone)', true, false, false),
    ('enqueue_late(text,bigint[],bytea[],text[],timestamp without time zone[],timestamp with time zone)', true, false,
        false),
    ('note_scan_failure(text,timestamp with time zone)', true, false, false),
    ('release_writer(timestamp with time zone)', true, false, false),
    ('set_setting(text,text,timestamp with time zone)', true, true, false);
create role msgx_test_stranger nologin;
create temp view routine as select p.oid, replace(p.oid::regprocedure::text, 'msgx.', '') as name from pg_proc p
    where p.pronamespace = 'msgx'::regnamespace;
select is(has_function_privilege('msgx_' || x.role, r.oid, 'execute'),
          coalesce(case x.role when 'driver' then m.driver when 'operator' then m.operator when 'report' then m.report end,
          false),
          format('%s: %s', x.role, r.name))
  from routine r left join may m on m.routine = r.name cross
      join unnest(array['driver', 'operator', 'report', 'test_stranger']) x (role) order by r.name, x.role;
select set_eq('select routine from may', $$select name from routine where name not like '\_%'$$,
          'the list names every entry point');

-- Tables and views: reading.
create temp table reads (relation text, driver boolean, report boolean);
insert into reads select v, true, true from unnest(array['backfill_todo', 'consistency_check', 'dead_letter', 'delivery_lag', 'health',
    'duplicate_count', 'flight_schd_display', 'ignored_count', 'queue_head', 'queue_status', 'snapshot_ledger',
    'setting', 'setting_history', 'schema_history']) v;
insert into reads select v, true, false from unnest(array['inbox_cursor', 'inbox_gap', 'delivery_target', 'loop_status', 'proc_state', 'message_raw', 'msg_event']) v;
create temp view relation as select c.oid, c.relname::text as name,
    c.relkind from pg_class c where c.relnamespace = 'msgx'::regnamespace and c.relkind in ('r', 'v', 'S');
select is(has_table_privilege('msgx_' || x.role, r.oid, 'select'),
          case x.role when 'operator' then true when 'driver' then coalesce(d.driver,
          false) when 'report' then coalesce(d.report, false) else false end,
          format('%s reads %s', x.role, r.name))
  from relation r left join reads d on d.relation = r.name cross
      join unnest(array['driver', 'operator', 'report', 'test_stranger']) x (role) where r.relkind <> 'S'
      order by r.name, x.role;

-- Tables and views: writing.
select is((select array_agg(r.name || ' ' || p order by r.name) from relation r cross
          join unnest(array['insert', 'update', 'delete', 'truncate', 'references', 'trigger']) p
            where r.relkind <> 'S' and has_table_privilege('msgx_' || x.role, r.oid, p)), null,
                x.role || ' changes no table')
  from unnest(array['driver', 'operator', 'report', 'test_stranger']) x (role);
select is((select array_agg(r.name || '.' || a.attname) from relation r
          join pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
            where r.relkind <> 'S' and has_column_privilege('msgx_' || x.role, r.oid, a.attnum,
                'insert,update,references')), null, x.role || ' changes no column')
  from unnest(array['driver', 'operator', 'report', 'test_stranger']) x (role);
select is((select array_agg(r.name) from relation r where r.relkind = 'S' and has_sequence_privilege('msgx_' || x.role,
          r.oid, 'usage,select,update')), null, x.role || ' touches no sequence')
  from unnest(array['driver', 'operator', 'report', 'test_stranger']) x (role);
select is((select array_agg(c.relname::text) from pg_class c,
          aclexplode(c.relacl) a where c.relnamespace = 'msgx'::regnamespace and a.grantee = 0), null,
          'PUBLIC has no right on any relation');

-- The schema and the roles.
select is(has_schema_privilege('msgx_' || x.role, 'msgx', 'create'), false, x.role || ' creates nothing in the schema')
          from unnest(array['driver', 'operator', 'report', 'test_stranger']) x (role);
select is(has_schema_privilege('msgx_' || x.role, 'msgx', 'usage'), x.role <> 'test_stranger',
          x.role || ' and the use of the schema') from unnest(array['driver', 'operator', 'report',
          'test_stranger']) x (role);
select is((select rolcanlogin or rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls
          from pg_roles where rolname = 'msgx_' || x.role), false, x.role || ' is a plain role without login')
  from unnest(array['owner', 'driver', 'operator', 'report']) x (role);
select is(pg_has_role('msgx_' || x.role, 'msgx_owner', 'member'), false, x.role || ' is no member of the owner')
          from unnest(array['driver', 'operator', 'report']) x (role);

-- In deed.
select is(tap.do_as('msgx_driver', s), '42501', 'driver: ' || s)
  from unnest(array['insert into msgx.setting select * from msgx.setting',
      'update msgx.proc_state set status = $$DEAD$$', 'delete from msgx.msg_event', 'truncate msgx.message_raw',
      'select count(*) from msgx.flight_schd',
                    'select count(*) from msgx.message_identity', 'select msgx._get_setting($$kafka.tombstone$$)',
                        'select msgx._delete_flights($${}$$, 1, now())',
                        'select msgx.acknowledge_state_loss($$a$$, $$b$$, null)',
                    'create table msgx.x (a integer)',
                        'create function msgx.f() returns integer language sql as $$select 1$$',
                        'alter function msgx.contract_version() reset all', 'drop table msgx.setting']) s;
select is(tap.as_role('msgx_operator', s), '42501', 'operator: ' || s)
  from unnest(array['update msgx.proc_state set status = $$PENDING$$', 'delete from msgx.operator_audit',
      'update msgx.setting set value = $$keep$$', 'select msgx.process_message(1, $${}$$, null)',
      'select msgx.acquire_writer(null)', 'select msgx._raise($$MX001$$, $$x$$, null)']) s;
select is(tap.as_role('msgx_report', s), '42501', 'report: ' || s)
  from unnest(array['select count(*) from msgx.proc_state', 'select count(*) from msgx.message_raw',
      'select msgx.set_setting($$kafka.tombstone$$, $$null$$, null)', 'select * from msgx.preview_events()',
      'select msgx.next_message(null)']) s;
select is(tap.as_role('msgx_test_stranger', s), '42501', 'stranger: ' || s)
          from unnest(array['select msgx.contract_version()', 'select count(*) from msgx.queue_status']) s;
select is(tap.as_role('msgx_report', s), '0', 'report: ' || s)
          from unnest(array['select count(*) from msgx.flight_schd_display',
          'select count(*) from msgx.consistency_check', 'select count(*) from msgx.flight_projection(null)']) s;
select is(tap.as_role('msgx_operator', 'select msgx.set_setting($$kafka.tombstone$$, $$null$$, null)'), '',
          'operator sets a setting');
select is((select changed_by::text from setting where name = 'kafka.tombstone'), session_user::text collate "default",
          'the session user is kept, not the owner');
select is(tap.as_role('msgx_operator', 'select msgx.acknowledge_state_loss($$claimed$$, $$r$$, null) ->> $$lost$$'),
          '0', 'operator accepts a loss');
select is((select (operator, session_name)::text from operator_audit), format('(claimed,%s)', session_user),
          'claimed operator and session user stand side by side');

select * from finish();
rollback;
