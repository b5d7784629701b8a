-- Routines: pinned search_path, rights, volatility, no dynamic SQL (engineering, contract).
begin;
set local search_path = msgx, tap;
select plan(108);

create view pg_temp.r as
    select p.oid, p.proname::text as name, p.prosecdef, p.provolatile::text as volatility, p.proconfig, p.proargnames,
        p.proargmodes, p.pronargs, p.pronargdefaults, p.prosrc, l.lanname, p.proacl
      from pg_proc p join pg_language l on l.oid = p.prolang where p.pronamespace = 'msgx'::regnamespace;

select is((select c from unnest(r.proconfig) c where c like 'search\_path=%'), 'search_path=pg_catalog, msgx, pg_temp',
          format('%s is pinned to its own schema, pg_temp last', r.name)) from pg_temp.r order by r.name;
select is((select array_agg(name) from pg_temp.r where prosecdef and name like '\_%'), null,
          'no inner routine is SECURITY DEFINER');
select set_eq('select name from pg_temp.r where prosecdef',
          array['acknowledge_state_loss', 'acquire_writer', 'block_target', 'claim_backfill', 'claim_events',
          'confirm_backfill', 'confirm_events', 'contract_version', 'enqueue_messages', 'fail_backfill', 'fail_events',
          'field_catalogue', 'flight_projection', 'release_target', 'report_loop', 'republish_flights', 'redeliver_events', 'is_redelivered',
          'start_inbox', 'scan_inbox', 'enqueue_inbox', 'rescan_inbox', 'enqueue_late', 'note_scan_failure',
              'next_message', 'preview_events', 'process_message', 'record_failure', 'release_writer', 'set_setting'],
                  'the entry points are SECURITY DEFINER');
select is((select array_agg(name) from pg_temp.r where name not like '\_%' and not prosecdef), null,
          'every entry point is');
select is((select array_agg(name) from pg_temp.r where proacl is null or exists (select 1 from aclexplode(proacl) a
          where a.grantee = 0)), null, 'PUBLIC may execute none');
select is((select array_agg(name) from pg_temp.r where name like '\_%' and exists (select 1 from aclexplode(proacl) a
          where a.grantee <> 'msgx_owner'::regrole)), null, 'nobody but the owner may execute an inner one');
select is((select array_agg(name) from (select name from pg_temp.r group by name having count(*) > 1) x), null,
          'no name is overloaded');
select is((select array_agg(name) from pg_temp.r where pronargdefaults > 0), null, 'no argument has a default');
select is((select array_agg(r.name || '.' || a.name) from pg_temp.r cross
          join lateral unnest(r.proargnames, coalesce(r.proargmodes, array_fill('i'::"char",
          array[coalesce(cardinality(r.proargnames), 0)]))) a (name, mode)
            where a.mode in ('i', 'b', 'v') and a.name !~ '^p_'), null, 'every parameter starts with p_');
select is((select array_agg(name) from pg_temp.r
          where array['p_now'] <@ proargnames and proargnames[pronargs] <> 'p_now'), null, 'p_now comes last');
select is((select array_agg(name) from pg_temp.r
          where prosecdef and volatility = 'v' and proargnames[pronargs] is distinct from 'p_now'), array['is_redelivered'],
          'every entry point that writes takes p_now; is_redelivered reads what a claim has just seen');
select is((select array_agg(name) from pg_temp.r where lanname not in ('sql', 'plpgsql')), null,
          'SQL and PL/pgSQL only');
select is((select array_agg(name) from pg_temp.r where prosrc ~* '\mexecute\M'), null, 'no dynamic SQL');
select is((select array_agg(name) from pg_temp.r where prosrc ~* '\mexception\s+when\M'), null, 'no exception block');
select is((select array_agg(name) from pg_temp.r where prosrc ~* '\m(commit|rollback|savepoint)\s*;'), null,
          'no transaction control');
select is((select array_agg(name) from pg_temp.r where prosrc ~* '\mcreate\s+(temp|temporary|table)\M'), null,
          'no temporary tables');
select is((select array_agg(name) from pg_temp.r
          where prosrc ~* '\m(now|current_timestamp|localtimestamp|current_date|statement_timestamp|transaction_timestamp|to_date|to_timestamp)\M\s*(\(|;|,)'),
          null, 'the clock is read by clock_timestamp alone, and only where p_now is null');
select is((select array_agg(name order by name) from pg_temp.r where prosrc ~ 'clock_timestamp'),
          array['_resolve_now', 'acquire_writer'], 'and only there, and where sessions are told apart');
select is((select array_agg(name) from pg_temp.r where prosrc ~ '\mmsgx\.(?!writer_started)' and prosrc !~ 'docs/'),
          null, 'no routine names the schema');
select is((select array_agg(c.relname::text) from pg_class c
          where c.relnamespace = 'msgx'::regnamespace and c.relkind = 'v' and pg_get_viewdef(c.oid) ~* '\m(now|current_timestamp|current_date)\M'),
          null, 'no view reads the clock');

-- Volatility as stated.
select is((select array_agg(name order by name collate "C") from pg_temp.r where volatility = 'i'),
          array['_backoff', '_build_notice', '_content_hash', '_day_of_month', '_edit_mafl', '_full_dttm', '_merge_items',
          '_shown_value', '_sis_day', 'contract_version'], 'immutable');
select is((select array_agg(name order by name collate "C") from pg_temp.r where volatility = 's'),
          array['_carried_keys', '_check_flights', '_check_overtaken', '_check_recs', '_check_reused', '_check_twice',
          '_get_setting', '_identity_of', '_lost_members', '_match_ignore', '_queue_channel', '_require_head', '_require_read_committed', '_shared_of', '_shown_items', '_snapshot_day', '_stage_changes', '_started_here',
          '_writer_key', 'field_catalogue', 'flight_projection', 'preview_events'], 'stable');
select is((select array_agg(name) from pg_temp.r where volatility in ('s',
          'i') and prosrc ~* '\m(insert into|update [a-z_]+ set|delete from)\M'), null,
          'what does not change data is not volatile only in name');

-- One routine each that writes flights, deletes them, writes the outbox and the terminal status.
select is((select array_agg(name order by name collate "C") from pg_temp.r
          where prosrc ~* '\m(insert into|update)\s+flight_schd\M'), array['_write_flights'],
          'one routine writes flights');
select is((select array_agg(name order by name collate "C") from pg_temp.r
          where prosrc ~* '\mdelete from flight_schd\M'), array['_delete_flights'], 'one routine deletes them');
select is((select array_agg(name order by name collate "C") from pg_temp.r where prosrc ~* '\minsert into msg_event\M'),
          array['_add_events'], 'one routine writes the outbox');
select is((select array_agg(name order by name collate "C") from pg_temp.r
          where prosrc ~* '\m(insert into|update|delete from)\s+schd_gen\M'), array['_advance_schd_gen'],
          'one routine writes the ledger');
select is((select array_agg(name order by name collate "C") from pg_temp.r where prosrc ~* '\mbackfill_status\s*= ''PENDING'''),
          array['_finish_message'], 'one routine registers the backfill');
select is(contract_version(), 1, 'the contract has version 1');

select * from finish();
rollback;
