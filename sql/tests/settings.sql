-- Settings: known names and values only, history, lock (docs/decisions.md).
begin;
set local search_path = msgx, tap;
select plan(62);

select is(_get_setting('snapshot.absent_flight'), 'delete', 'a setting is read');
select throws_ok($$select _get_setting('nope')$$, 'MX301', null, 'an unknown one is an error');
select throws_ok($$select _get_setting(null)$$, 'MX301', null, 'no name is an error');
select throws_ok($$select set_setting('nope', 'x', null)$$, 'MX003',
          'no setting is named nope; the table setting lists the names', 'an unknown name is refused');
select throws_ok($$select set_setting(null, 'x', null)$$, 'MX003', null, 'no name is refused');
select throws_ok(format('select set_setting(%L, %L, null)', n, v), 'MX003', null,
          format('%s does not take %s', n, coalesce(to_json(v)::text, 'null')))
  from (values ('snapshot.absent_flight', 'drop'), ('snapshot.absent_flight', ''), ('snapshot.absent_flight', null),
      ('snapshot.absent_flight', 'Delete'),
               ('snapshot.absent_flight', 'delete|keep'), ('snapshot.absent_flight', e'keep\n'),
                   ('snapshot.absent_flight', ' keep'),
               ('schedule.day_starts_at', '24:00'), ('schedule.day_starts_at', '4:00'),
                   ('schedule.day_starts_at', '04:60'),
               ('snapshot.max_delete_ratio', '1.1'), ('snapshot.max_delete_ratio', '-0.1'),
                   ('snapshot.max_delete_ratio', '.5'), ('snapshot.max_delete_ratio', 'on'),
               ('snapshot.max_flights', '0'), ('snapshot.max_flights', '1e3'), ('pipeline.max_attempts', '0'),
                   ('pipeline.max_attempts', '100'),
               ('pipeline.backoff_base', '0'), ('pipeline.backoff_cap', '0'), ('wire.max_bytes', '999'),
                   ('identity.conflict', 'accept'),
               ('kafka.tombstone', 'none')) x (n, v);
select is((select count(*) from setting_history), 0::bigint, 'a refused value leaves no history');
select is((select count(*) from setting where value <> default_value), 0::bigint,
          'after installation every value is the default');

select lives_ok($$select set_setting('snapshot.absent_flight', 'keep', timestamptz '2026-09-09 01:00:00+00')$$,
          'a value is set');
select results_eq($$select value::text, default_value::text, changed_at,
          changed_by::text from setting where name = 'snapshot.absent_flight'$$,
                  $$values ('keep', 'delete', timestamptz '2026-09-09 01:00:00+00',
                      session_user::text collate "default")$$, 'value, instant and person are kept');
select is(_get_setting('snapshot.absent_flight'), 'keep', 'it is in force');
select results_eq('select name::text, old_value::text, new_value::text, changed_at, changed_by::text from setting_history',
                  $$values ('snapshot.absent_flight', 'delete', 'keep', timestamptz '2026-09-09 01:00:00+00',
                      session_user::text collate "default")$$, 'with history');
select lives_ok($$select set_setting('snapshot.absent_flight', 'keep', timestamptz '2026-09-09 02:00:00+00')$$,
          'the same value again');
select is((select count(*) from setting_history), 1::bigint, 'is no change');
select is((select changed_at from setting where name = 'snapshot.absent_flight'), timestamptz '2026-09-09 01:00:00+00',
          'and moves no instant');
select lives_ok(format('select set_setting(%L, %L, null)', n, v), format('%s takes "%s"', n, v))
  from (values ('snapshot.absent_flight', 'delete'), ('snapshot.absent_field', 'clear'),
      ('snapshot.reclaim', 'protect'), ('snapshot.recs_mismatch', 'warn'),
               ('snapshot.max_delete_ratio', '0'), ('snapshot.max_delete_ratio', '0.25'),
                   ('snapshot.max_delete_ratio', '1'), ('snapshot.max_delete_ratio', 'off'),
               ('schedule.day_starts_at', '04:00'), ('wire.unknown_field', 'ignore'), ('wire.empty_scalar', 'clear'),
                   ('request.resp_guard', 'lenient'),
               ('identity.conflict', 'accept_newer'), ('identity.conflict', 'dead'),
                   ('identity.include_day_boundary', 'yes'), ('identity.of_dead', 'takeover'),
               ('kafka.tombstone', 'null'), ('pipeline.max_attempts', '99')) x (n, v);
select ok((select bool_and(changed_at between now() and clock_timestamp()) from setting_history
          where changed_at <> timestamptz '2026-09-09 01:00:00+00'), 'p_now null reads the clock');
select throws_ok($$update setting set value = 'x' where name = 'snapshot.reclaim'$$, '23514', null,
          'the table itself refuses other values');
select is((select count(*) from setting s where s.default_value !~ ('^(?:' || s.pattern || ')$')), 0::bigint,
          'every default matches its pattern');
select is((select count(*) from pg_locks
          where relation = 'pipeline_lock'::regclass and pid = pg_backend_pid() and mode = 'RowShareLock'), 1::bigint,
          'the lock row is taken');
select throws_ok($$select set_setting('airport.time_zone', 'Mars/Base', null)$$, 'MX003', null, 'a zone that nobody knows is refused');
select lives_ok($$select set_setting('airport.time_zone', 'Europe/Berlin', null)$$, 'a known one is taken');
select is((select count(*) from setting where description !~ '^(D[0-9]+|FS-|US-|contract)'), 0::bigint,
          'every setting names its source');

select * from finish();
rollback;
