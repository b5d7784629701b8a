-- SRVT, VIPF and MAFL: text as sent, or JSON that stays JSON (D28).
begin;
set local search_path = msgx, tap;
select plan(28);

select tap.start();
select is(tap.outcome(tap.flop('SRVT', tap.rec('F',
          '{"SRVT":"plain [text]","VIPF":"[{\"NAME\":\"A\",\"TEXT\":\"x\"},{\"NAME\":\"B\"}]","MAFL":"YY1,YY2"}'))),
          'SUCCEEDED', 'three texts');
select is((select vipf_text::text from flight_schd), '[{"NAME":"A","TEXT":"x"},{"NAME":"B"}]', 'stored as text');
select is(tap.flight('F') -> 'SRVT', '"plain [text]"'::jsonb, 'text is text outside');
select is(tap.flight('F') -> 'VIPF', '[{"NAME":"A","TEXT":"x"},{"NAME":"B"}]'::jsonb,
          'JSON is JSON outside, never a string of it');
select is(tap.flight('F') -> 'MAFL', '"YY1,YY2"'::jsonb, 'a list is text');
select is(tap.outcome(tap.flop('SRVT', tap.rec('F', jsonb_build_object('SRVT', t)))), 'SUCCEEDED',
          format('%s passes', to_json(t)))
  from unnest(array['[', '[]', '{}', '{"a":1}', '[1]', '"x"', 'null', ' [{', '[ {', '航班']) t;
select is(tap.flight('F') -> 'SRVT', '"航班"'::jsonb, 'and only [{ makes JSON of it');
select is(tap.outcome(tap.flop('SRVT', tap.rec('F', jsonb_build_object('SRVT', t)))), 'DEAD/MALFORMED ' || s,
          format('%s could not be read back', to_json(t)))
  from (values ('[{', '22P02'), ('[{"a":1}', '22P02'), ('[{"a":1}] x', '22P02'), ('[{a}]', '22P02'),
      ('[{"a":"\u0000"}]', '22P05'), ('[{"a":1e999999}]', '22003'), ('[{"a":"\ud800"}]', '22P02')) v (t, s);
select is(tap.flight('F') -> 'SRVT', '"航班"'::jsonb, 'the text before stays');
select is(tap.outcome(tap.flop('VIPF', tap.rec('F', jsonb_build_object('VIPF', '[{' || repeat('[', 20000))))),
          'DEAD/MALFORMED 22P02', 'a bomb of brackets');
select is(tap.outcome(tap.flop('ESTT', tap.rec('F', '{"ESTT":"[{"}'))), 'SUCCEEDED', 'a scalar is never JSON');
select is(tap.flight('F') -> 'ESTT', '"[{"'::jsonb, 'whatever it looks like');
select lives_ok('select * from flight_projection(null)', 'every flight can be read');

select * from finish();
rollback;
