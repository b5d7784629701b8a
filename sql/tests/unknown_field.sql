-- Unknown tags and attributes, and those out of scope (D10).
begin;
set local search_path = msgx, tap;
select plan(36);

select tap.start();
select tap.given(tap.plan_of('09SEP26', 'F'));
create temp table r (step text primary key, j jsonb);

-- reject.
select is(tap.outcome(c), 'DEAD/EXHAUSTED MX103', 'reject: ' || d)
  from (values ('a scalar', tap.flop('ESTT', tap.rec('F', '{"ESTT":"1","XXXX":"1"}'))),
      ('a collection', tap.flop('ESTT', tap.rec('F', '{"ESTT":"1"}', '{"XXXX":[{"A":"1"}]}'))),
               ('a key of an item', tap.flop('GTDT', tap.rec('F', null, '{"GTDT":[{"GTNO":"1"},{"XXXX":"1"}]}'))),
                   ('an attribute of an object', tap.flop('FDIV', tap.rec('F', '{"FDIV":{"DDES":"1","XXXX":"2"}}'))),
               ('a clear', tap.flop('ESTT', tap.rec('F', '{"ESTT":"1"}', null, '["XXXX"]'))),
                   ('named by the decoder', tap.flop('ESTT', tap.rec('F',
                   '{"ESTT":"1"}') || '{"unknown":["STD/ABCD"]}')),
               ('a child of SCHD', tap.plan_of('09SEP26', 'F') || '{"unknown":["XXXX"]}'),
                   ('in a plan', tap.dnld('09SEP26', tap.rec('F', '{"XXXX":"1"}'))),
                   ('in ADFT', tap.adft(tap.rec('F', '{"XXXX":"1"}'))),
               ('in lower case', tap.flop('ESTT', tap.rec('F', '{"ESTT":"1","estt":"2"}'))),
                   ('a column that is no tag', tap.flop('ESTT', tap.rec('F', '{"ESTT":"1","FDAY":"2026-09-09"}'))),
               ('the version', tap.flop('ESTT', tap.rec('F', '{"ESTT":"1","STATE_VERSION":"9"}'))),
                   ('an item key of another collection', tap.flop('GTDT', tap.rec('F', null,
                   '{"GTDT":[{"CKNO":"1"}]}'))),
               ('a collection as a scalar', tap.flop('ESTT', tap.rec('F', '{"ESTT":"1","GTDT":"1"}'))),
                   ('a scalar as a collection', tap.flop('ESTT', tap.rec('F', '{"ESTT":"1"}', '{"STD":[{}]}')))) v (d,
                   c);
select is(tap.flight('F') - 'UPDATED_AT',
          '{"FLID":"F","FDAY":"2026-09-09","STATE_VERSION":1,"LAST_MESSAGE_ID":1,"MVIN":"D"}'::jsonb,
          'reject: nothing was applied');
select is(tap.outcome(tap.flop('ESTT', tap.rec('G', '{"ESTT":"1"}'), tap.rec('F', '{"ESTT":"1","XXXX":"secret"}'))),
          'DEAD/EXHAUSTED MX103', 'reject: one of several records');
select is(tap.reason(),
          format('message %s, flight F, tag XXXX: unknown field (wire.unknown_field = reject); list it in wire_ignored_field and have it sent again under a new SEQN',
          tap.last_id()), 'reject: the reason names tag and FLID, not the value');
select is((select (last_error_class, attempts)::text from proc_state where message_id = tap.last_id()),
          '(UNSUPPORTED,3)', 'reject: UNSUPPORTED, so that it can be requeued');
select is(tap.outcome(tap.flop('GTDT', tap.rec('F', null, '{"GTDT":[{"GTNO":"1","YYYY":"1"}]}'))),
          'DEAD/EXHAUSTED MX103', 'reject: a key of an item');
select matches(tap.reason(), 'flight F, tag GTDT/YYYY: unknown field', 'reject: it is named with its collection');
select is(tap.outcome(tap.plan_of('09SEP26', 'F') || '{"unknown":["ZZZZ"]}'), 'DEAD/EXHAUSTED MX103',
          'reject: a child of SCHD');
select matches(tap.reason(), '^message [0-9]+, tag ZZZZ: ', 'reject: without a flight');

-- The list of tags out of scope.
insert into r values ('listed', tap.send(tap.flop('ESTT', tap.rec('F', '{"ESTT":"2","FFID":"9","BOTM":"1"}'),
    tap.rec('G', '{"ESTT":"2","FFID":"8"}', null, '["LACL"]'))));
select is((select j -> 'result' -> 'ignored_fields' from r where step = 'listed'),
          '{"FFID": 2, "BOTM": 1, "LACL": 1}'::jsonb, 'tags out of scope are left out and counted by name');
select is((select j ->> 'status' from r where step = 'listed'), 'SUCCEEDED', 'the rest is applied');
select is((select result -> 'ignored_fields' from proc_state where message_id = tap.last_id()),
          '{"FFID": 2, "BOTM": 1, "LACL": 1}'::jsonb, 'the count is kept');
select is((select payload -> 'CHANGED' from msg_event
          where message_id = tap.last_id() and flid = 'F' and kind = 'NOTICE'), '["ESTT"]'::jsonb,
          'CHANGED names what was applied');
select is((select array_agg(tag::text order by tag) from wire_ignored_field),
          array['APPT', 'BOTM', 'FFID', 'FINT', 'LACL'], 'the tags that are seeded');
select is(tap.outcome(tap.flop('ESTT', tap.rec('F', '{"FFID":"9"}'))), 'DEAD/MALFORMED MX101',
          'a tag out of scope is no key of a kind');

-- ignore.
select tap.set('wire.unknown_field', 'ignore');
insert into r values ('ignore', tap.send(tap.flop('ESTT',
    tap.rec('F', '{"ESTT":"3","XXXX":"1","FDIV":{"DDES":"H","YYYY":"2"}}',
    '{"GTDT":[{"GATE":"A","ZZZZ":"1"},{"ZZZZ":"1"}],"WWWW":[{}]}', '["VVVV"]') || '{"unknown":["STD/ABCD"]}')));
select is((select j -> 'result' -> 'ignored_fields' from r where step = 'ignore'),
          '{"XXXX": 1, "FDIV/YYYY": 1, "GTDT/ZZZZ": 2, "WWWW": 1, "VVVV": 1, "STD/ABCD": 1}'::jsonb,
          'ignore: everything unknown is counted by name');
select is(tap.flight('F') @> '{"ESTT":"3","FDIV":{"DDES":"H"},"GTDT":[{"GATE":"A"},{}]}', true,
          'ignore: the known rest is applied');
select is((select payload -> 'CHANGED' from msg_event where message_id = tap.last_id() and kind = 'NOTICE'),
          '["ESTT", "FDIV", "GTDT"]'::jsonb, 'ignore: CHANGED names known tags only');
select is(tap.send(tap.plan_of('09SEP26', 'F') || '{"unknown":["ZZZZ"]}') -> 'result' -> 'ignored_fields',
          '{"ZZZZ": 1}'::jsonb, 'ignore: a child of SCHD');
select is(tap.send(tap.adft(tap.rec('F', '{"XXXX":"1"}'))) -> 'result',
          '{"records": 1, "written": 0, "created": 0, "equal": 1, "ignored_fields": {"XXXX": 1}, "events": 0}'::jsonb,
          'ignore: an unknown field makes no difference');
select is(tap.outcome(tap.flop('ESTT', tap.rec('F', '{"XXXX":"1"}'))), 'DEAD/MALFORMED MX101',
          'ignore: a record still needs a key of its kind');
select is(tap.send(tap.fdel('F') || '{"flights":[{"FLID":"F","set":{"XXXX":"1"}}]}') -> 'result' -> 'ignored_fields',
          '{"XXXX": 1}'::jsonb, 'ignore: in a deletion');

select * from finish();
rollback;
