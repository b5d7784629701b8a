-- The list of a main flight follows its shared flights (D23).
begin;
set local search_path = msgx, tap;
select plan(71);

select tap.start();

-- Tokens.
select is(_edit_mafl(t, a, r), e, format('%s + %s - %s', t, a, r))
  from (values
      (null, '{A1}'::text[], '{}'::text[], 'A1'), ('', '{A1}', '{}', 'A1'), ('', '{A1,A2}', '{}', 'A1,A2'),
      ('A1', '{A2}', '{}', 'A1,A2'), ('A1,A2', '{A3}', '{}', 'A1,A2,A3'), ('A1/A2', '{A3}', '{}', 'A1/A2/A3'),
          ('A1;A2', '{A3}', '{}', 'A1;A2;A3'), ('A1 A2', '{A3}', '{}', 'A1 A2 A3'),
      ('A1/A2,A3', '{A4}', '{}', 'A1,A2,A3,A4'), ('A1;A2/A3', '{A4}', '{}', 'A1/A2/A3/A4'),
          ('A1 A2;A3', '{A4}', '{}', 'A1;A2;A3;A4'), ('A1, A2', '{A3}', '{}', 'A1,A2,A3'),
      (',A1,,A2,', '{A3}', '{}', 'A1,A2,A3'), ('A1,A2', '{A2}', '{}', 'A1,A2'), ('A1, A2', '{A2}', '{}', 'A1, A2'),
          ('A1', '{}', '{}', 'A1'), (null, '{}', '{}', null), ('', '{}', '{}', ''),
      ('A1', '{A10}', '{}', 'A1,A10'), ('A10', '{A1}', '{}', 'A10,A1'), ('a1', '{A1}', '{}', 'a1,A1'),
          ('A1', '{A2,A2}', '{}', 'A1,A2'), ('A1', '{""}', '{}', 'A1'),
      ('A1,A2,A3', '{}', '{A2}', 'A1,A3'), ('A1/A2', '{}', '{A2}', 'A1'), ('A1', '{}', '{A1}', ''),
          ('A1,A1,A2', '{}', '{A1}', 'A2'), ('A10,A1', '{}', '{A1}', 'A10'),
      ('XA1,A1X', '{}', '{A1}', 'XA1,A1X'), ('A1, A2', '{}', '{A3}', 'A1, A2'), ('A1,A2', '{}', '{A1,A2}', ''),
          (null, '{}', '{A1}', null), ('A1,A2', '{A3}', '{A1}', 'A2,A3'),
      ('[{"FLNO":"A1"}]', '{A2}', '{}', '[{"FLNO":"A1"}]'), ('["A1"]', '{}', '{A1}', '["A1"]'),
          ('[]', '{A1}', '{}', '[]'),
      (null, '{"[{A"}', '{}', null), ('A1,[{A', '{}', '{A1}', 'A1,[{A')) v (t, a, r, e);

-- ADFT that creates a shared flight.
select tap.given(tap.plan_of('09SEP26', 'M', 'N'));
select is(tap.send(tap.adft(tap.rec('S1', '{"FLNO":"YY1","MAID":"M"}'))) -> 'result',
          '{"records": 1, "written": 1, "created": 1, "events": 4}'::jsonb, 'a shared flight comes');
select is(tap.flight('M') ->> 'MAFL', 'YY1', 'its FLNO is on the list of its main');
select is(tap.events(tap.last_id()), array['NOTICE S1 1', 'STATE S1 1', 'NOTICE M 2', 'STATE M 2'],
          'the main takes a version, a notice, a state event, at the end');
select is((select payload -> 'CHANGED' from msg_event
          where message_id = tap.last_id() and flid = 'M' and kind = 'NOTICE'), '["MAFL"]'::jsonb,
          'the notice says MAFL');
select is((select (last_message_id, fday)::text from flight_schd where flid = 'M'),
          format('(%s,2026-09-09)', tap.last_id()), 'the main keeps its day');
select is(tap.outcome(tap.adft(tap.rec('S1', '{"ESTT":"1","FLNO":"YY9","MAID":"M"}'))), 'SUCCEEDED',
          'an ADFT that changes it');
select is(tap.flight('M') ->> 'MAFL', 'YY1', 'only one that creates it counts');
select is(tap.version('M'), 2::bigint, 'the main is not touched');
select is(tap.send(tap.adft(tap.rec('S2', '{"FLNO":"YY2","MAID":"M"}'), tap.rec('S3', '{"FLNO":"YY3","MAID":"N"}'),
          tap.rec('S4', '{"FLNO":"YY4","MAID":"M"}'), tap.rec('S5', '{"MAID":"M"}'),
                                  tap.rec('S6', '{"FLNO":"YY6","MAID":"GONE"}'),
                                      tap.rec('S7', '{"FLNO":"YY7","MAID":"S7"}'),
                                      tap.rec('S8', '{"FLNO":"YY8","MAID":""}'),
                                      tap.rec('S9', '{"FLNO":"YY1","MAID":"M"}'))) -> 'result' ->> 'events',
          '20', 'several at once');
select is(tap.flight('M') ->> 'MAFL', 'YY1,YY2,YY4', 'in package order, each once, without those that have no FLNO');
select is(tap.flight('N') ->> 'MAFL', 'YY3', 'each main for itself');
select is((tap.events(tap.last_id()))[17:20], array['NOTICE M 3', 'STATE M 3', 'NOTICE N 2', 'STATE N 2'],
          'one version each, mains by FLID');
select is((select count(*) from flight_schd where flid in ('S6', 'S7', 'S8') and mafl_text is null), 3::bigint,
          'a missing main, the flight itself and nobody are no mains');
select is(tap.outcome(tap.adft(tap.rec('P', '{"FLNO":"PP1"}'), tap.rec('Q', '{"FLNO":"QQ1","MAID":"P"}'))), 'SUCCEEDED',
          'main and shared flight in one package');
select is(tap.flight('P') ->> 'MAFL', 'QQ1', 'are linked too');
select is(tap.events(tap.last_id()), array['NOTICE P 1', 'STATE P 1', 'NOTICE Q 1', 'STATE Q 1', 'NOTICE P 2',
          'STATE P 2'], 'the main takes a second version');

-- FDEL of a shared flight.
select is(tap.send(tap.fdel('S2')) -> 'result', '{"records": 1, "deleted": 1, "events": 4}'::jsonb,
          'a shared flight goes');
select is(tap.flight('M') ->> 'MAFL', 'YY1,YY4', 'its FLNO leaves the list');
select is(tap.events(tap.last_id()), array['NOTICE S2 2', 'TOMBSTONE S2 2', 'NOTICE M 4', 'STATE M 4'],
          'the main is told after the deletion');
select is(tap.send(tap.fdel('S5')) -> 'result' ->> 'events', '2', 'one without FLNO changes no list');
select is(tap.version('M'), 4::bigint, 'and gives no version');
select is(tap.send(tap.fdel('S4', 'S9', 'S3')) -> 'result' ->> 'events', '10', 'several at once');
select is((select mafl_text::text from flight_schd where flid = 'M'), '', 'an emptied list is empty text');
select is(tap.flight('M') ? 'MAFL', false, 'which is no data outside');
select is(tap.flight('N') ? 'MAFL', false, 'the other list is emptied too');
select is(tap.send(tap.fdel('P', 'Q')) -> 'result', '{"records": 2, "deleted": 2, "events": 4}'::jsonb,
          'main and shared flight together: no list to keep');
select is(tap.outcome(tap.fdel('S6')), 'SUCCEEDED', 'a shared flight whose main is not there');
select tap.given(tap.flop('MAFL', tap.rec('M', '{"MAFL":"[{\"FLNO\":\"YY5\"}]"}')),
          tap.adft(tap.rec('S5', '{"FLNO":"YY5","MAID":"M"}')));
select is(tap.send(tap.fdel('S5')) -> 'result' ->> 'events', '2', 'a JSON list is left alone');
select is(tap.flight('M') -> 'MAFL', '[{"FLNO":"YY5"}]'::jsonb, 'as the sender gave it');

-- Neither plan nor FLOP touches the list.
select tap.given(tap.plan_of('09SEP26', 'M', 'N'), tap.flop('MAFL', tap.rec('N', '{"MAFL":"KK1"}')));
select tap.given(tap.dnld('09SEP26', tap.rec('M'), tap.rec('N'), tap.rec('S', '{"FLNO":"KK2","MAID":"N"}')));
select is(tap.flight('N') ->> 'MAFL', 'KK1', 'a plan that brings a shared flight does not');
select tap.given(tap.flop('ESTT', tap.rec('R', '{"ESTT":"1","FLNO":"KK3","MAID":"N"}')));
select is(tap.flight('N') ->> 'MAFL', 'KK1', 'a FLOP that creates one does not');

-- A list that outgrows its column.
update flight_schd set mafl_text = repeat('x', 29999) where flid = 'N';
select is(tap.outcome(tap.adft(tap.rec('S10', '{"FLNO":"YY10","MAID":"N"}'))), 'DEAD/MALFORMED 22001',
          'a list that outgrows its column is capacity');
select is(tap.flids() @> array['S10'], false, 'and nothing is applied');

select * from finish();
rollback;
