-- Text of a message is data: never spliced, never run, never in a reason (contract 3).
begin;
set local search_path = msgx, tap;
select plan(120);

select tap.start();
create temp table hostile (n integer primary key, flid text);
insert into hostile values (1, ''''), (2, '"'), (3, '\'), (4, '%'), (5, '_'), (6, ''';drop table x;--'), (7, '$$'),
    (8, '{"a":1}'), (9, '%s%I%L'), (10, e'\t'), (11, 'a b'), (12, '\u0041'), (13, '航班甲乙丙丁戊己庚辛'), (14, '|'),
    (15, '{a,b}'), (16, 'null'), (17, '</MSG>'), (18, E'\u202e'), (19, '😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀');

-- As FLID, through every routine.
select is(tap.outcome(tap.flop('GTDT', tap.rec(h.flid, null, jsonb_build_object('GTDT',
          jsonb_build_array(jsonb_build_object('GATE', h.flid)))))), 'SUCCEEDED',
          format('FLID %s is created', to_json(h.flid))) from hostile h order by h.n;
select is(tap.flight(h.flid) -> 'GTDT' -> 0 ->> 'GATE', h.flid, format('FLID %s is projected', to_json(h.flid)))
          from hostile h order by h.n;
select is(tap.outcome(tap.dnld('09SEP26',
          variadic array(select tap.rec(h.flid, jsonb_build_object('MAID', h.flid, 'FLNO', h.flid))
          from hostile h))), 'SUCCEEDED', 'a plan of them');
select is(cardinality(tap.members('2026-09-09')), 19, 'all are on the list');
select is(tap.outcome(tap.dnld('09SEP26', tap.rec('''', '{"ESTT":"1"}'))), 'SUCCEEDED', 'a plan of one');
select is(tap.flids(), array[''''], 'deletes exactly the others');
select is(tap.outcome(tap.adft(variadic array(select tap.rec(h.flid, jsonb_build_object('FLNO', h.flid, 'MAID', ''''))
          from hostile h where h.n > 1))), 'SUCCEEDED', 'shared flights of it');
select is(tap.outcome(tap.fdel('''')), 'SUCCEEDED', 'a deletion');
select is(tap.flids(), '{}'::text[], 'with its cascade');
select is((select count(*) from flight_tombstone), 19::bigint, 'a tombstone each');
select is((select count(*) from preview_events() where kind = 'TOMBSTONE'), 19::bigint, 'the preview has them');
select is((select count(*) from consistency_check), 0::bigint, 'nothing is odd');

-- As META: identity and row.
select is(tap.outcome(tap.with_meta(tap.flop('ESTT', tap.rec('F', '{"ESTT":"1"}')),
          jsonb_build_object('SNDR', h.flid, 'DTTM', h.flid))), 'SUCCEEDED', format('SNDR %s', to_json(h.flid)))
          from hostile h order by h.n;
select is((select count(distinct identity_key) from message_identity where identity_key like '%FLOP|ESTT|%'),
          19::bigint, 'an identity each');
select is(tap.outcome(tap.with_meta(tap.flop('ESTT', tap.rec('F', '{"ESTT":"1"}')),
          jsonb_build_object('STYP', h.flid))), 'DEAD/EXHAUSTED MX103', format('STYP %s', to_json(h.flid)))
          from hostile h order by h.n;

-- As tags: refused by name.
select is(tap.outcome(tap.flop('ESTT', tap.rec('F', jsonb_build_object('ESTT', '1', 'X' || h.flid, 'secret')))),
          'DEAD/EXHAUSTED MX103', format('tag X%s', to_json(h.flid))) from hostile h order by h.n;
select is((select count(*) from proc_state where reason like '%secret%'), 0::bigint, 'no reason holds a value');
select is(tap.outcome(tap.flop('ESTT', tap.rec('F', jsonb_build_object('ESTT', '1', repeat('T', 5000), 'x')))),
          'DEAD/EXHAUSTED MX103', 'a tag of 5000 characters');
select ok((select length(reason) < 300 from proc_state where message_id = tap.last_id()), 'is cut in the reason');

-- As values: whatever they hold they come back as they came.
select is(tap.outcome(tap.flop('REMC', tap.rec('V', jsonb_build_object('REMC', h.flid, 'FLNO', h.flid)))), 'SUCCEEDED',
          format('value %s', to_json(h.flid))) from hostile h where h.n in (1, 6, 9, 18, 19) order by h.n;
select is(tap.flight('V') ->> 'REMC', (select flid from hostile where n = 19), 'the value comes back');
select throws_ok($$select set_setting('x''; drop table setting; --', 'y', null)$$, 'MX003', null,
          'a hostile setting name');
select throws_ok($$select set_setting('snapshot.reclaim', 'protect''; --', null)$$, 'MX003', null,
          'a hostile setting value');
select is(enqueue_messages(''';--', array[5000], array['\x00ff27'::bytea], array['bytes'], null, null) ->> 'new', '1',
          'a hostile source and bytes');
select is((select source::text from proc_state where message_id = 5000), ''';--', 'are kept as they are');
select is(acknowledge_state_loss(''';--', '$$', null) ->> 'lost', '0', 'a hostile operator');

select * from finish();
rollback;
