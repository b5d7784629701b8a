-- First rows: kinds, rules, settings (contract 1, decisions).
begin;
set local search_path = msgx, tap;
select plan(39);

select is((select string_agg(styp, ' ' order by styp) from flop_kind where enabled and origin = 'source'),
          'ABTM CHDT CHOT CKDT CLDT CNCL DELY ERUT FDEL FDIV FLAB FRET GTDT MAFL PSDT ROUT SRVT VIPF',
          'kinds named by the sources');
select is((select string_agg(styp, ' ' order by styp) from flop_kind where enabled and origin = 'assumed'),
          'ACFT ACTT ESTT FLIN FLTY HNAG REMC RENO STND TAOP TRML', 'assumed kinds');
select is((select count(*) from flop_kind where enabled), 29::bigint, '29 kinds are enabled');
select is((select string_agg(styp, ' ' order by styp) from flop_kind where not enabled),
          'COBT CTOT EGSR EGST EOBT EXSS FTSS IEST MAXP NAAT NEAT PADT PEDT RUNW TOBT VIPP', 'kinds that are disabled');
select is((select string_agg(styp || '=' || array_to_string(keys, '+'), ' ' order by styp) from flop_kind
          where keys <> array[styp::text]),
          'EXSS=EXSC+EXSR FDEL= HNAG=FHAG+PHAG+MHAG TAOP=TAOP+TAFL+TAID VIPP=VIPP+VIPR', 'group kinds');
select is((select array_agg(k.styp || ' ' || t.tag) from flop_kind k cross join unnest(k.keys) t (tag)
          where not exists (select 1 from flight_field f where f.tag = t.tag)), null, 'every key is a field');
select is((select count(*) from flop_kind where collection_mode <> 'REPLACE'), 0::bigint, 'every kind replaces (D12)');
select is((select string_agg(styp, ' ' order by styp) from flop_kind where on_missing = 'IGNORE'), 'CNCL FDEL',
          'who ignores a missing flight (D13)');
select is((select count(*) from flop_kind where not notify), 0::bigint, 'every kind notifies');
select is((select string_agg(type || '/' || styp, ' ' order by type, styp) from ignore_rule),
          'EROR/* FLOP/APPT FLOP/BOTM FLOP/FINT FLOP/LACL LDM/* REGN/* RSTA/*', 'ignore rules (US-04)');
select is((select string_agg(tag, ' ' order by tag) from wire_ignored_field), 'APPT BOTM FFID FINT LACL',
          'tags out of scope (D10)');
select is((select array_agg(w.tag::text) from wire_ignored_field w join flight_field f on f.tag = w.tag), null,
          'none of which is a field');
select is((select count(*) from flop_kind k join ignore_rule r on r.type = 'FLOP' and r.styp = k.styp), 0::bigint,
          'no kind is ignored');
select is((select value::text from setting where name = n), v, format('%s = %s', n, v))
  from (values ('snapshot.absent_flight', 'delete'), ('snapshot.absent_field', 'keep'),
      ('snapshot.reclaim', 'latest_message_wins'), ('snapshot.recs_mismatch', 'reject'),
      ('schedule.day_starts_at', '00:00'),
               ('wire.unknown_field', 'reject'), ('wire.empty_scalar', 'set'), ('snapshot.max_delete_ratio', 'off'),
                   ('snapshot.max_flights', '10000'), ('wire.max_bytes', '10485760'), ('request.resp_guard', 'strict'),
               ('pipeline.unsupported_attempts', '3'), ('pipeline.max_attempts', '8'), ('pipeline.backoff_base', '1'),
                   ('pipeline.backoff_cap', '60'), ('identity.conflict', 'skip'),
                   ('identity.include_day_boundary', 'no'),
               ('identity.of_dead', 'skip'), ('kafka.tombstone', 'object')) v (n, v);
select is((select count(*) from setting where changed_by <> session_user), 0::bigint, 'the installing person is named');
select results_eq('select name::text, writer_pid, released_at, epoch, queue_floor from pipeline_lock',
          $$values ('FLIGHT_SCHD_WRITER', null::integer, null::timestamptz, 1, 0::bigint)$$,
          'one lock row, nobody writes');
select is((select count(*) from flight_schd) + (select count(*) from proc_state) + (select count(*)
          from msg_event) + (select count(*) from schd_gen), 0::bigint, 'no data');
select is((select array_agg(distinct kind::text order by kind::text) from schema_history),
          array['repeatable', 'versioned'], 'the history says what was applied');
select is((select count(*) from schema_history where checksum !~ '^[0-9a-f]{64}$'), 0::bigint, 'with SHA-256');
select is((select count(*) from schema_history where kind = 'repeatable' and name like 'procedures/%'),
          (select count(*) from pg_proc where pronamespace = 'msgx'::regnamespace), 'one file per routine');
select is((select count(*) from schema_history where kind = 'repeatable' and name like 'views/%'),
          (select count(*) from pg_class where relnamespace = 'msgx'::regnamespace and relkind = 'v'),
          'one file per view');

select * from finish();
rollback;
