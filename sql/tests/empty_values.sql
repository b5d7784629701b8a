-- Empty scalars, texts, objects and collections; outside storage empty is absent (D11, FS-6.1, FS-6.2).
begin;
set local search_path = msgx, tap;
select plan(38);

select tap.start();
select tap.given(tap.dnld('09SEP26', tap.rec('F',
          '{"FLNO":"ZZ1","CNCL":"Y","ESTT":"1","SRVT":"s","VIPF":"v","MAFL":"m","FDIV":{"DDES":"H","TEXT":"t"}}',
          '{"GTDT":[{"GTNO":"1","GATE":"A"}]}')));

-- set: '' is stored.
select is(tap.outcome(tap.flop('CNCL', tap.rec('F', '{"CNCL":""}'))), 'SUCCEEDED', 'an empty scalar');
select is((select cncl::text from flight_schd), '', 'set: is stored as empty text');
select is(tap.flight('F') ? 'CNCL', false, 'set: and is absent outside');
select is((select cncl from flight_schd_display), null, 'set: in the board as well');
select is((select payload -> 'CHANGED' from msg_event where message_id = 2 and kind = 'NOTICE'), '["CNCL"]'::jsonb,
          'set: it is told as changed');
select is(tap.outcome(tap.flop('SRVT', tap.rec('F', '{"SRVT":"","VIPF":"","MAFL":""}'))), 'SUCCEEDED', 'empty texts');
select is((select (srvt_text, vipf_text, mafl_text)::text from flight_schd), '("","","")', 'are stored as empty text');
select is(tap.flight('F') ?| array['SRVT', 'VIPF', 'MAFL'], false, 'and are absent outside');
select is(tap.outcome(tap.flop('FDIV', tap.rec('F', '{"FDIV":{"DDES":"","TEXT":"t"}}'))), 'SUCCEEDED',
          'an empty attribute of an object');
select is((select (fdiv_ddes, fdiv_ddir, fdiv_text)::text from flight_schd), '("",,t)', 'is stored');
select is(tap.flight('F') -> 'FDIV', '{"TEXT":"t"}'::jsonb, 'and is absent outside');
select is(tap.outcome(tap.flop('FDIV', tap.rec('F', '{"FDIV":{"DDES":"","TEXT":""}}'))), 'SUCCEEDED',
          'an object of empty attributes');
select is(tap.flight('F') ? 'FDIV', false, 'is absent outside');
select is(tap.outcome(tap.flop('GTDT', tap.rec('F', null,
          '{"GTDT":[{"GTNO":"","GATE":"B","GTYP":""},{"GATE":""},{}]}'))), 'SUCCEEDED', 'empty keys of items');
select is(tap.flight('F') -> 'GTDT', '[{"GATE":"B"},{},{}]'::jsonb, 'an emptied item stays as {}');
select results_eq('select ordinal, source_seq::text, gate::text, gtyp::text from flight_gate order by ordinal',
          $$values (1, '', 'B', ''), (2, null, '', null), (3, null, null, null)$$, 'stored as sent');

-- clear.
select tap.set('wire.empty_scalar', 'clear');
select is(tap.outcome(tap.flop('ESTT', tap.rec('F', '{"ESTT":"","FLNO":"ZZ2","SRVT":""}'))), 'SUCCEEDED',
          'with empty_scalar = clear');
select is((select (estt is null, flno, srvt_text)::text from flight_schd), '(t,ZZ2,"")',
          'clear: a scalar becomes null; others and texts are as sent');
select is(tap.outcome(tap.flop('ESTT', tap.rec('F', '{"ESTT":"5","FDIV":{"DDES":""}}'))), 'SUCCEEDED',
          'clear: no empty scalar among them');
select is((select (estt, fdiv_ddes)::text from flight_schd), '(5,"")', 'clear: attributes of objects are no scalars');
select is(tap.outcome(tap.dnld('09SEP26', tap.rec('F', '{"ESTT":""}'), tap.rec('G', '{"ESTT":"","STD":"x"}'))),
          'SUCCEEDED', 'clear: in a plan');
select is((select array_agg(flid || coalesce(estt, ' null') || coalesce(std, '') order by flid) from flight_schd),
          array['F null', 'G nullx'], 'clear: every record');
select tap.set('wire.empty_scalar', 'set');

-- MAID '' is no main.
select tap.given(tap.adft(tap.rec('E', '{"MAID":""}')));
select is(_shared_of(array[''], '{}'), '{}'::text[], 'an empty MAID is nobody''s shared flight');

-- Explicit clear is null.
select is(tap.outcome(tap.flop('SRVT', tap.rec('F', null, null, '["SRVT","FDIV","GTDT","ESTT","CNCL"]'))), 'SUCCEEDED',
          'explicit clear of every kind');
select is((select coalesce(srvt_text, fdiv_ddes, fdiv_text, estt, cncl) is null from flight_schd where flid = 'F'),
          true, 'columns are null');
select is((select count(*) from flight_gate), 0::bigint, 'rows are gone');

-- What is shown, value by value.
select is(_shown_value(v::jsonb), e::jsonb, format('%s shows %s', v, e))
  from (values ('"a"', '"a"'), ('""', null), ('null', null), ('[]', null), ('{}', null), ('{"A":""}', null),
      ('{"A":"","B":"b"}', '{"B":"b"}'), ('"[{\"a\":\"b\"}]"', '[{"a":"b"}]'),
               ('"[x]"', '"[x]"'), ('[{}]', '[{}]')) x (v, e);
select is(_shown_items('[{"GTNO":"1","GATE":"","XXXX":"y"},{}]', 'GTDT'), '[{"GTNO":"1"},{}]'::jsonb,
          'items: known keys, no empty text');
select is(_shown_items('[]', 'GTDT'), '[]'::jsonb, 'no items');

select * from finish();
rollback;
