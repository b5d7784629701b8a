-- An old-day plan and flights of a later day (D3).
begin;
set local search_path = msgx, tap;
select plan(26);

select tap.start();

-- latest_message_wins: as FS 3.3 writes it.
select tap.given(tap.plan_of('09SEP26', 'A', 'C'), tap.dnld('10SEP26', tap.rec('C', '{"ESTT":"new"}')));
select is(tap.outcome(tap.dnld('09SEP26', tap.rec('A'), tap.rec('C', '{"ESTT":"old"}'))), 'SUCCEEDED',
          'a late plan of the old day lists C');
select is((tap.flight('C') ->> 'FDAY') || ' ' || (tap.flight('C') ->> 'ESTT'), '2026-09-09 old', 'it takes C back');
select is(tap.members('2026-09-10'), array['C'], 'the later list still names C');
select is((select result ? 'protected' from proc_state where message_id = tap.last_id()), false,
          'nothing is protected');

-- protect: the flight of the later day stays as it is.
select tap.set('snapshot.reclaim', 'protect');
select tap.given(tap.dnld('10SEP26', tap.rec('C', '{"ESTT":"new"}')));
select tap.version('C') as v \gset
select is(tap.send(tap.dnld('09SEP26', tap.rec('A'), tap.rec('C', '{"ESTT":"old"}'))) -> 'result',
          '{"fday": "2026-09-09", "version": 3, "records": 2, "written": 1, "created": 0, "deleted": 0, "protected": 1, "events": 1}'::jsonb,
              'protect: counted, not written');
select is((tap.flight('C') ->> 'FDAY') || ' ' || (tap.flight('C') ->> 'ESTT'), '2026-09-10 new',
          'protect: day and state stay');
select is(tap.version('C'), :v::bigint, 'protect: no version');
select is(tap.events(tap.last_id()), array['STATE A 3'], 'protect: no event for it');
select is(tap.members('2026-09-09'), array['A', 'C'], 'protect: it enters the list of the day');
select is((select high_message_id from flight_schd where flid = 'C'),
          (select last_message_id from flight_schd where flid = 'C'), 'protect: it was not touched by the message');
select is(tap.outcome(tap.plan_of('11SEP26', 'C')), 'SUCCEEDED', 'protect: a later day takes it');
select is(tap.flight('C') ->> 'FDAY', '2026-09-11', 'protect: forward it moves');
select is(tap.send(tap.plan_of('11SEP26', 'C')) -> 'result' ? 'protected', false,
          'protect: the same day is no later day');

-- protect: a candidate for deletion that another list holds is handed over.
select tap.given(tap.plan_of('12SEP26', 'H', 'I', 'J'), tap.plan_of('14SEP26', 'K', 'L'));
update schd_gen_flid set flid = 'H' where fday = '14SEP2026' and flid = 'L';
insert into schd_gen_flid values ('2026-09-13', 'H'), ('2026-09-08', 'I');
insert into schd_gen values ('2026-09-13', 1, 1, 1, now()), ('2026-09-08', 1, 1, 1, now());
select is(tap.send(tap.plan_of('12SEP26', 'M')) -> 'result',
          '{"fday": "2026-09-12", "version": 2, "records": 1, "written": 1, "created": 1, "deleted": 1, "handed_over": 2, "events": 4}'::jsonb,
              'protect: two are handed over, one is deleted');
select is(tap.flight('H') ->> 'FDAY', '2026-09-14', 'protect: to the latest such day');
select is(tap.flight('I') ->> 'FDAY', '2026-09-08', 'protect: an earlier day will do');
select is(array[tap.version('H'), tap.version('I')], array[2, 2]::bigint[], 'protect: one version each');
select is(tap.events(tap.last_id()), array['STATE M 1', 'STATE H 2', 'STATE I 2', 'TOMBSTONE J 2'],
          'protect: a state event each; the deletion last');
select is(tap.flight('H') ->> 'MVIN', 'D', 'protect: the state stays');
select is((select count(*) from flight_tombstone where flid in ('H', 'I')), 0::bigint, 'protect: no tombstone');
select is(tap.members('2026-09-14'), array['H', 'K'], 'protect: the other list is not changed');

-- protect: what is deleted with its main is not handed over.
select tap.given(tap.dnld('15SEP26', tap.rec('MAIN', '{"FLNO":"ZZ1"}'), tap.rec('SHARE', '{"MAID":"MAIN"}')));
insert into schd_gen_flid values ('2026-09-13', 'SHARE');
select is(tap.send(tap.plan_of('15SEP26')) -> 'result',
          '{"fday": "2026-09-15", "version": 2, "records": 0, "written": 0, "created": 0, "deleted": 2, "events": 2}'::jsonb,
          'protect: main and shared flight are deleted, none is handed over');
select is(tap.events(tap.last_id()), array['TOMBSTONE MAIN 2', 'TOMBSTONE SHARE 2'], 'protect: one event each');

-- protect: the main is handed over, so nothing cascades.
select tap.given(tap.dnld('16SEP26', tap.rec('MA', '{"FLNO":"ZZ1"}'), tap.rec('SH', '{"MAID":"MA"}')));
insert into schd_gen_flid values ('2026-09-13', 'MA');
select is(tap.send(tap.plan_of('16SEP26', 'SH')) -> 'result' -> 'deleted', '0'::jsonb,
          'protect: a main that is handed over takes nobody along');
select is(tap.flids() @> array['MA', 'SH'], true, 'protect: both stay');

-- protect with absent_flight = keep: nothing goes, nothing is handed over.
select tap.set('snapshot.absent_flight', 'keep');
select is(tap.send(tap.plan_of('16SEP26')) -> 'result',
          '{"fday": "2026-09-16", "version": 3, "records": 0, "written": 0, "created": 0, "deleted": 0, "events": 0}'::jsonb,
          'protect and keep');

select * from finish();
rollback;
