-- A plan merges: what it carries wins, what it omits stays, or is cleared (FS-5.4, FS-7-4, D2).
begin;
set local search_path = msgx, tap;
select plan(18);

select tap.start();
select tap.given(tap.dnld('09SEP26', tap.rec('A',
          '{"STD":"09SEP260700","ESTT":"0900","SRVT":"x","FDIV":{"DDES":"HKG","TEXT":"t"},"ABDG":"7"}',
          '{"GTDT":[{"GTNO":"1","GATE":"G28"}],"DELY":[{"CODE":"RA"}],"PSDT":[{"PSNO":"1","PSST":"S1","ABDG":"B1"}]}')));

-- keep.
select is(tap.outcome(tap.dnld('09SEP26', tap.rec('A', '{"STD":"09SEP260710","ACTT":"1012"}',
          '{"GTDT":[{"GTNO":"1","GATE":"A1"}]}'))), 'SUCCEEDED', 'a plan that omits fields');
select is(tap.flight('A') - 'UPDATED_AT',
          '{"FLID":"A","FDAY":"2026-09-09","STATE_VERSION":2,"LAST_MESSAGE_ID":2,"STD":"09SEP260710","ACTT":"1012","ESTT":"0900","SRVT":"x","FDIV":{"DDES":"HKG","TEXT":"t"},"ABDG":"7","GTDT":[{"GTNO":"1","GATE":"A1"}],"DELY":[{"CODE":"RA"}],"PSDT":[{"PSNO":"1","PSST":"S1","ABDG":"B1"}]}'::jsonb,
          'keep: what it carries wins, what it omits stays');
select is(tap.outcome(tap.flop('GTDT', tap.rec('A', null, '{"GTDT":[{"GTNO":"5","GATE":"Z9"}]}'))), 'SUCCEEDED',
          'a dynamic event between');
select is(tap.outcome(tap.dnld('09SEP26', tap.rec('A', '{"STD":"09SEP260710"}',
          '{"GTDT":[{"GTNO":"1","GATE":"A1"}],"DELY":[]}', '["FDIV"]'))), 'SUCCEEDED', 'the plan again');
select is(tap.flight('A') -> 'GTDT', '[{"GTNO":"1","GATE":"A1"}]'::jsonb,
          'the plan has the highest authority on its day');
select is(tap.flight('A') ? 'DELY', false, 'an empty list clears');
select is(tap.flight('A') ? 'FDIV', false, 'an explicit clear clears');
select is(tap.flight('A') ->> 'ESTT', '0900', 'omitted stays');

-- clear.
select tap.given(tap.flop('DELY', tap.rec('A', null, '{"DELY":[{"CODE":"RA"}]}')),
          tap.flop('FDIV', tap.rec('A', '{"FDIV":{"DDES":"HKG"}}')));
select tap.set('snapshot.absent_field', 'clear');
select is(tap.outcome(tap.dnld('09SEP26', tap.rec('A', '{"STD":"09SEP260710"}',
          '{"CKDT":[{"CKNO":"1","CHKC":"C1"}]}'))), 'SUCCEEDED', 'the same with absent_field = clear');
select is(tap.flight('A') - 'UPDATED_AT',
          '{"FLID":"A","FDAY":"2026-09-09","STATE_VERSION":7,"LAST_MESSAGE_ID":7,"STD":"09SEP260710","CKDT":[{"CKNO":"1","CHKC":"C1"}]}'::jsonb,
          'clear: everything it omits is gone');
select is((select count(*) from flight_schd where coalesce(estt, actt, srvt_text, fdiv_ddes, fdiv_text, abdg) is null),
          1::bigint, 'clear: the columns are null');
select is(tap.outcome(tap.flop('ESTT', tap.rec('A', '{"ESTT":"1"}'))), 'SUCCEEDED', 'a FLOP');
select is(tap.flight('A') ->> 'STD', '09SEP260710', 'clear concerns plans only: a FLOP keeps');
select is(tap.outcome(tap.adft(tap.rec('A', '{"ACTT":"1"}'))), 'SUCCEEDED', 'an ADFT');
select is(tap.flight('A') ->> 'STD', '09SEP260710', 'an ADFT keeps');
select is(tap.outcome(tap.dnld('09SEP26', tap.rec('A'), tap.rec('B', '{"STD":"1"}'))), 'SUCCEEDED',
          'a plan with a bare record');
select is(tap.flight('A') - 'UPDATED_AT',
          format('{"FLID":"A","FDAY":"2026-09-09","STATE_VERSION":10,"LAST_MESSAGE_ID":%s}', tap.last_id())::jsonb,
          'clear: nothing is left of it');
select is(tap.flight('B') ->> 'STD', '1', 'clear: each record for itself');

select * from finish();
rollback;
