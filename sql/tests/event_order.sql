-- Order of events and ids of the outbox (D41, contract 3).
begin;
set local search_path = msgx, tap;
select plan(18);

select tap.start();
select is((select count(*) from msg_event), 0::bigint, 'an empty outbox');

-- A plan: states in package order, deletions by code point.
select tap.given(tap.plan_of('09SEP26', 'z', 'B', 'a', 'É', 'C', '_'));
select is(tap.events(1), array['STATE z 1', 'STATE B 1', 'STATE a 1', 'STATE É 1', 'STATE C 1', 'STATE _ 1'],
          'a plan: package order');
select tap.given(tap.plan_of('09SEP26', 'Y', 'X'));
select is(tap.events(2), array['STATE Y 1', 'STATE X 1', 'TOMBSTONE B 2', 'TOMBSTONE C 2', 'TOMBSTONE _ 2',
          'TOMBSTONE a 2', 'TOMBSTONE z 2', 'TOMBSTONE É 2'], 'a plan: then the deletions in code-point order');

-- FLOP and ADFT: notice, state, record by record.
select tap.given(tap.flop('ESTT', tap.rec('Y', '{"ESTT":"1"}'), tap.rec('X', '{"ESTT":"1"}')));
select is(tap.events(3), array['NOTICE Y 2', 'STATE Y 2', 'NOTICE X 2', 'STATE X 2'], 'FLOP: NOTICE before STATE');
select tap.given(tap.adft(tap.rec('Y', '{"ESTT":"2"}'), tap.rec('X', '{"ESTT":"2"}')));
select is(tap.events(4), array['NOTICE Y 3', 'STATE Y 3', 'NOTICE X 3', 'STATE X 3'], 'ADFT: the same');
select tap.given(tap.fdel('Y', 'X'));
select is(tap.events(5), array['NOTICE Y 4', 'TOMBSTONE Y 4', 'NOTICE X 4', 'TOMBSTONE X 4'],
          'FDEL: NOTICE before TOMBSTONE');

-- Ids.
select is((select array_agg(event_id order by event_id) from msg_event),
          (select array_agg(g::bigint) from generate_series(1, 26) g), 'ids from 1 without gaps');
select is((select count(*) from msg_event e where exists (select 1 from msg_event f
          where f.event_id < e.event_id and f.message_id > e.message_id)), 0::bigint,
          'id order is the order of messages');
select is(_add_events(9, array[row('KAFKA:schd', 'STATE', 'P', 1, null), row('KAFKA:msg', 'NOTICE', 'P', 1,
          '{"a":1}')]::outbox_entry[], tap.now_of(9)), 2, 'the routine alone says how many');
select results_eq('select event_id, target::text, kind::text, flid::text, state_version, message_id, payload, status::text, attempts, next_attempt_at, created_at, sent_at from msg_event where event_id > 26 order by event_id',
                  $$values (27::bigint, 'KAFKA:schd', 'STATE', 'P', 1::bigint, 9::bigint, null::jsonb, 'PENDING', 0,
                      null::timestamptz, tap.now_of(9), null::timestamptz),
                           (28, 'KAFKA:msg', 'NOTICE', 'P', 1, 9, '{"a":1}', 'PENDING', 0, null, tap.now_of(9),
                               null)$$, 'in the given order, PENDING');
select is(_add_events(9, '{}', now()), 0, 'none');
select is(_add_events(9, null, now()), 0, 'none at all');
select throws_ok($$select _add_events(9, array[row('KAFKA:msg', 'STATE', 'P', 1, null)]::outbox_entry[], now())$$,
          '23514', null, 'a STATE is no notice');
select throws_ok($$select _add_events(9, array[row('KAFKA:x', 'STATE', 'P', 1, null)]::outbox_entry[], now())$$,
          '23514', null, 'an unknown target');

-- A notice.
select is(_build_notice(7, '{"SNDR":"A","TYPE":"FLOP","STYP":"GTDT","SEQN":"007","DTTM":"2026","X":"no"}', 'F',
          array['B', 'A']),
          '{"FLID":"F","MESSAGE_ID":7,"SNDR":"A","TYPE":"FLOP","STYP":"GTDT","SEQN":"007","DTTM":"2026","CHANGED":["B","A"]}'::jsonb,
              'META as sent, and nothing else');
select is(_build_notice(7, '{"SNDR":"A"}', 'F', '{}'), '{"FLID":"F","MESSAGE_ID":7,"SNDR":"A","CHANGED":[]}'::jsonb,
          'what META lacks is left out');
select is(_carried_keys('{"FLID":"F","set":{"STD":"1","XXXX":"1"},"replace":{"GTDT":[]},"clear":["FDIV","STD","YYYY"],"apply":{"DELY":[]}}'),
          array['DELY', 'FDIV', 'GTDT', 'STD'], 'carried keys: known tags, sorted, once');
select is(_carried_keys('{"FLID":"F"}'), null, 'none');

select * from finish();
rollback;
