-- The reserved command Apply: first entry with the same sequence, else append; DELY by CODE (D12, FS-5.2-5).
begin;
set local search_path = msgx, tap;
select plan(32);

select tap.start();

-- The routine alone.
select is(_merge_items('[{"GTNO":"1","GATE":"A"},{"GTNO":"2","GATE":"B"}]', '[{"GTNO":"2","GATE":"C"}]', 'GTNO'),
          '[{"GTNO":"1","GATE":"A"},{"GTNO":"2","GATE":"C"}]'::jsonb, 'the entry with the same sequence');
select is(_merge_items('[{"GTNO":"1","GATE":"A","GTYP":"D"}]', '[{"GTNO":"1","GATE":"C"}]', 'GTNO'),
          '[{"GTNO":"1","GATE":"C","GTYP":"D"}]'::jsonb, 'is overlaid, not replaced');
select is(_merge_items('[{"GTNO":"1","GATE":"A"},{"GTNO":"1","GATE":"B"}]', '[{"GTNO":"1","GATE":"C"}]', 'GTNO'),
          '[{"GTNO":"1","GATE":"C"},{"GTNO":"1","GATE":"B"}]'::jsonb, 'the first of several');
select is(_merge_items('[{"GTNO":"1"}]', '[{"GTNO":"3","GATE":"C"}]', 'GTNO'),
          '[{"GTNO":"1"},{"GTNO":"3","GATE":"C"}]'::jsonb, 'else it is appended');
select is(_merge_items('[{"GATE":"A"}]', '[{"GATE":"B"}]', 'GTNO'), '[{"GATE":"A"},{"GATE":"B"}]'::jsonb,
          'no sequence matches nothing');
select is(_merge_items(null, '[{"GTNO":"1"},{"GTNO":"1","GATE":"X"}]', 'GTNO'), '[{"GTNO":"1","GATE":"X"}]'::jsonb,
          'later items see earlier ones');
select is(_merge_items('[{"GTNO":"1"}]', '[]', 'GTNO'), '[{"GTNO":"1"}]'::jsonb, 'nothing changes nothing');
select is(_merge_items('[{"GTNO":"01"}]', '[{"GTNO":"1"}]', 'GTNO'), '[{"GTNO":"01"},{"GTNO":"1"}]'::jsonb,
          'the text is compared');

-- The command.
select tap.given(tap.plan_of('09SEP26', 'F'));
select is(tap.outcome(tap.flop('GTDT', tap.rec('F', null, null, null,
          '{"GTDT":[{"GTNO":"1","GATE":"A"},{"GTNO":"2","GATE":"B"}]}'))), 'SUCCEEDED', 'apply on an empty set');
select is(tap.flight('F') -> 'GTDT', '[{"GTNO":"1","GATE":"A"},{"GTNO":"2","GATE":"B"}]'::jsonb, 'appends');
select is(tap.outcome(tap.flop('GTDT', tap.rec('F', null, null, null,
          '{"GTDT":[{"GTNO":"2","GTYP":"I"},{"GTNO":"3","GATE":"C"}],"DELY":[{"CODE":"RA","DURA":"10"}]}'))),
          'SUCCEEDED', 'apply two sets');
select is(tap.flight('F') -> 'GTDT',
          '[{"GTNO":"1","GATE":"A"},{"GTNO":"2","GATE":"B","GTYP":"I"},{"GTNO":"3","GATE":"C"}]'::jsonb,
          'one is changed, one appended');
select is((select array_agg(ordinal || ' ' || record_version order by ordinal) from flight_gate where flid = 'F'),
          array['1 3', '2 3', '3 3'], 'ordinals from 1, all of the new version');
select is(tap.outcome(tap.flop('DELY', tap.rec('F', null, null, null,
          '{"DELY":[{"CODE":"WX"},{"CODE":"RA","DURA":"20"}]}'))), 'SUCCEEDED', 'DELY');
select is(tap.flight('F') -> 'DELY', '[{"CODE":"RA","DURA":"20"},{"CODE":"WX"}]'::jsonb, 'is matched by CODE');
select is((select payload -> 'CHANGED' from msg_event where message_id = tap.last_id() and kind = 'NOTICE'),
          '["DELY"]'::jsonb, 'the key counts as carried');
select is(tap.outcome(tap.flop('ROUT', tap.rec('F', null, '{"ERUT":[{"RTNO":"1","APCD":"X"}]}', null,
          '{"ROUT":[{"RTNO":"1","APCD":"A"}]}'))), 'SUCCEEDED', 'apply and replace in one record');
select is(tap.flight('F') @> '{"ROUT":[{"RTNO":"1","APCD":"A"}],"ERUT":[{"RTNO":"1","APCD":"X"}]}', true,
          'each on its own set');
select is((select flight_schd.fday from flight_schd), date '2026-09-09', 'the day stays');

-- Two records of one flight.
select is(tap.outcome(tap.flop('CHOT', tap.rec('F', null, null, null, '{"CHOT":[{"CSNO":"1","CHID":"ON"}]}'),
          tap.rec('F', null, null, null, '{"CHOT":[{"CSNO":"1","CHTM":"0900"}]}'))), 'SUCCEEDED', 'twice in a message');
select is(tap.flight('F') -> 'CHOT', '[{"CSNO":"1","CHID":"ON","CHTM":"0900"}]'::jsonb, 'the second sees the first');

-- A kind in APPLY mode.
select is((select count(*) from flop_kind where collection_mode = 'APPLY'), 0::bigint, 'no kind uses it by default');
update flop_kind set collection_mode = 'APPLY' where styp = 'GTDT';
select is(tap.outcome(tap.flop('GTDT', tap.rec('F', null,
          '{"GTDT":[{"GTNO":"3","GATE":"Z"},{"GTNO":"4","GATE":"Y"}]}'))), 'SUCCEEDED',
          'a list of a kind in APPLY mode');
select is((select array_agg(source_seq || gate order by ordinal) from flight_gate), array['1A', '2B', '3Z', '4Y'],
          'is applied item by item');
select is(tap.outcome(tap.flop('GTDT', tap.rec('F', null, '{"GTDT":[]}'))), 'SUCCEEDED', 'an empty list');
select is(tap.flight('F') ? 'GTDT', false, 'clears all the same');
select is(tap.outcome(tap.flop('GTDT', tap.rec('NEW', null,
          '{"GTDT":[{"GTNO":"1","GATE":"A"},{"GTNO":"1","GATE":"B"}]}'))), 'SUCCEEDED', 'a flight that is not there');
select is(tap.flight('NEW') -> 'GTDT', '[{"GTNO":"1","GATE":"B"}]'::jsonb, 'starts from nothing');
select tap.given(tap.dnld('09SEP26', tap.rec('F', null, '{"GTDT":[{"GTNO":"1","GATE":"P"},{"GTNO":"1","GATE":"Q"}]}')));
select is(tap.flight('F') -> 'GTDT', '[{"GTNO":"1","GATE":"P"},{"GTNO":"1","GATE":"Q"}]'::jsonb,
          'a plan replaces whatever the mode');

-- The same checks as for replace.
select is(tap.outcome(tap.flop('GTDT', tap.rec('F', null, null, null, '{"GTDT":[{"XXXX":"1"}]}'))),
          'DEAD/EXHAUSTED MX103', 'an unknown key');
select is(tap.outcome(tap.flop('GTDT', tap.rec('F', null, null, null, '{"GTDT":"1"}'))), 'DEAD/MALFORMED MX101',
          'no list');
select is(tap.outcome(tap.flop('GTDT', tap.rec('F', null, null, null, '{"ESTT":[]}'))), 'DEAD/EXHAUSTED MX103',
          'a scalar is no set');

select * from finish();
rollback;
