-- A dynamic event changes what it carries and nothing else (FS-4.3, FS-5, D8).
begin;
set local search_path = msgx, tap;
select plan(28);

select tap.start();

-- The example of FS 4.3.
select tap.given(tap.dnld('09SEP26', tap.rec('CA100', '{"ESTT":"0900","STND":"101"}',
          '{"GTDT":[{"GTNO":"1","GATE":"G28"},{"GTNO":"2","GATE":"G33"}],"DELY":[{"CODE":"RA","DURA":"0045","TEXT":"late inbound"}]}')));
select is(tap.send(tap.flop('GTDT', tap.rec('CA100', null,
          '{"GTDT":[{"GTNO":"1","GATE":"A1","GTYP":"D"},{"GTNO":"3","GATE":"B2","GTYP":"I"}]}'))) -> 'result',
          '{"records": 1, "written": 1, "events": 2}'::jsonb, 'a new set of gates');
select results_eq('select ordinal, source_seq::text, gate::text, gtyp::text, pgot, pgct, gotm, gctm, record_version from flight_gate where flid = $$CA100$$ order by ordinal',
                  $$values (1, '1', 'A1', 'D', null::varchar, null::varchar, null::varchar, null::varchar, 2::bigint),
                      (2, '3', 'B2', 'I', null, null, null, null, 2)$$, 'order and source sequence are kept');
select is(tap.flight('CA100') - 'UPDATED_AT',
          '{"FLID":"CA100","FDAY":"2026-09-09","STATE_VERSION":2,"LAST_MESSAGE_ID":2,"ESTT":"0900","STND":"101",
          "GTDT":[{"GATE":"A1","GTNO":"1","GTYP":"D"},{"GATE":"B2","GTNO":"3","GTYP":"I"}],"DELY":[{"CODE":"RA","DURA":"0045","TEXT":"late inbound"}]}'::jsonb, 'everything else stays');
select is(tap.flight('CA100') ->> 'UPDATED_AT', '2026-09-09T00:02:00.000000Z',
          'UPDATED_AT is the instant of the message, UTC');
select is(tap.events(2), array['NOTICE CA100 2', 'STATE CA100 2'], 'a notice, then the state');
select is((select payload from msg_event where message_id = 2 and kind = 'NOTICE'),
          '{"FLID":"CA100","MESSAGE_ID":2,"SNDR":"AODB","TYPE":"FLOP","STYP":"GTDT","SEQN":"2","DTTM":"20260909080000","CHANGED":["GTDT"]}'::jsonb,
              'the notice names message and keys, no state');
select is((select count(*) from msg_event where kind = 'STATE' and payload is not null), 0::bigint,
          'STATE rows carry no payload');

-- The same resource number twice is two entries (FS-3.1-3).
select tap.given(tap.flop('CKDT', tap.rec('CA100', null,
          '{"CKDT":[{"CKNO":"2","CHKC":"C1","CCLS":"F"},{"CKNO":"1","CHKC":"C1","CCLS":"Y"},{"CHKC":"C1"},{"CKNO":"2","CHKC":"C1","CCLS":"F"}]}')));
select results_eq('select ordinal, source_seq::text, chkc::text, ccls::text from flight_checkin order by ordinal',
                  $$values (1, '2', 'C1', 'F'), (2, '1', 'C1', 'Y'), (3, null, 'C1', null), (4, '2', 'C1', 'F')$$,
                      'entries are never merged or sorted');

-- Clear: explicitly, or by an empty list.
select tap.given(tap.flop('CKDT', tap.rec('CA100', null, null, '["CKDT"]')));
select is((select count(*) from flight_checkin), 0::bigint, 'clear removes the rows');
select is(tap.flight('CA100') ? 'CKDT', false, 'and the key');
select tap.given(tap.flop('DELY', tap.rec('CA100', null, '{"DELY":[]}')));
select is(tap.flight('CA100') ? 'DELY', false, 'an empty list clears as well');
select tap.given(tap.flop('ESTT', tap.rec('CA100', null, null, '["ESTT"]')));
select is((select estt from flight_schd where flid = 'CA100'), null, 'clear of a scalar is null in the column');
select is(tap.flight('CA100') ? 'ESTT', false, 'and no key');
select is((select payload -> 'CHANGED' from msg_event where message_id = tap.last_id() and kind = 'NOTICE'),
          '["ESTT"]'::jsonb, 'a cleared key is told');
select is(tap.flight('CA100') -> 'GTDT' -> 0 ->> 'GATE', 'A1', 'gates are still there');

-- Objects are set as a whole.
select tap.given(tap.flop('FDIV', tap.rec('CA100', '{"FDIV":{"DDES":"HKG","DDIR":"WX","TEXT":"storm"}}')));
select is(tap.flight('CA100') -> 'FDIV', '{"DDES":"HKG","DDIR":"WX","TEXT":"storm"}'::jsonb, 'an object is set');
select tap.given(tap.flop('FDIV', tap.rec('CA100', '{"FDIV":{"DDES":"SZX"}}')));
select is(tap.flight('CA100') -> 'FDIV', '{"DDES":"SZX"}'::jsonb, 'an attribute that is not sent does not survive');
select is((select fdiv_ddir from flight_schd where flid = 'CA100'), null, 'its column is null');
select tap.given(tap.flop('FRET', tap.rec('CA100', '{"FRET":{"REID":"1","TEXT":"t"}}')),
          tap.flop('FLAB', tap.rec('CA100', '{"FLAB":{"ARES":"2","TEXT":"u"}}')));
select is((select (fret_reid, fret_text, flab_ares, flab_text)::text from flight_schd where flid = 'CA100'),
          '(1,t,2,u)', 'FRET and FLAB');
select tap.given(tap.flop('FDIV', tap.rec('CA100', null, null, '["FDIV"]')));
select is(tap.flight('CA100') ? 'FDIV', false, 'a cleared object is gone');
select is(tap.flight('CA100') @> '{"FRET":{"REID":"1","TEXT":"t"},"FLAB":{"ARES":"2","TEXT":"u"}}', true,
          'the other objects stay');

-- Several records in order, all or nothing.
select is(tap.send(tap.flop('ESTT', tap.rec('B', '{"ESTT":"1"}'), tap.rec('A', '{"ESTT":"2"}'),
          tap.rec('B', '{"ESTT":"3"}', '{"GTDT":[{"GATE":"9"}]}'), tap.rec('C', '{"ESTT":"4"}'),
          tap.rec('B', '{"ACTT":"5"}', null, '["ESTT"]'))) -> 'result',
          '{"records": 5, "written": 5, "created": 3, "events": 10}'::jsonb, 'five records of three flights');
select is(tap.flight('B') - 'UPDATED_AT',
          format('{"FLID":"B","STATE_VERSION":3,"LAST_MESSAGE_ID":%s,"ACTT":"5","GTDT":[{"GATE":"9"}]}',
          tap.last_id())::jsonb, 'a second record of a flight sees the first');
select is(tap.events(tap.last_id()), array['NOTICE B 1', 'STATE B 1', 'NOTICE A 1', 'STATE A 1', 'NOTICE B 2',
          'STATE B 2', 'NOTICE C 1', 'STATE C 1', 'NOTICE B 3', 'STATE B 3'], 'events in package order');
select is(tap.send(tap.flop('ESTT', tap.rec('B', '{"ESTT":"1"}'), tap.rec('B', '{"ESTT":"1"}'),
          tap.rec('B', '{"ESTT":"1"}'))) -> 'result', '{"records": 3, "written": 3, "events": 6}'::jsonb,
          'three times the same flight');
select is(tap.version('B'), 6::bigint, 'three versions: a FLOP always advances');
select is(tap.outcome(tap.flop('ESTT', tap.rec('A', '{"ESTT":"x"}'),
          tap.rec('Z', jsonb_build_object('ESTT', repeat('x', 201))))), 'DEAD/MALFORMED MX102', 'one bad record');
select is(tap.flight('A') ->> 'ESTT', '2', 'and nothing is applied');

select * from finish();
rollback;
