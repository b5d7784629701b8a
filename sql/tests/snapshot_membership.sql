-- Who is deleted by a plan: the old list without the new one, where the flight still belongs to the day (FS-3.3-19, D1).
begin;
set local search_path = msgx, tap;
select plan(24);

select tap.start();

-- Not on the old list, though of that day.
select tap.given(tap.plan_of('09SEP26', 'A', 'B'));
select tap.given(tap.flop('ESTT', tap.rec('U', '{"ESTT":"1"}')), tap.adft(tap.rec('V', '{"ESTT":"1"}')));
update flight_schd set fday = '2026-09-09' where flid = 'U';
select is(tap.send(tap.plan_of('09SEP26', 'A')) -> 'result' ->> 'deleted', '1', 'only B goes');
select is(tap.flids(), array['A', 'U', 'V'], 'a flight that was never listed stays, whatever its FDAY');

-- On the old list, but of no day.
select tap.given(tap.plan_of('09SEP26', 'A', 'B'));
update flight_schd set fday = null where flid = 'B';
select is(tap.send(tap.plan_of('09SEP26', 'A')) -> 'result' ->> 'deleted', '0', 'a flight without FDAY is not deleted');

-- Details go with the flight.
select tap.given(tap.dnld('11SEP26', tap.rec('D', '{}',
          '{"GTDT":[{"GATE":"1"}],"CKDT":[{"CHKC":"1"}],"CLDT":[{"BELT":"1"}],"PSDT":[{"PSST":"1"}],"CHDT":[{"CHUT":"1"}],"DELY":[{"CODE":"1"}],"ABTM":[{"ABDG":"1"}],"CHOT":[{"CHID":"ON"}],"ROUT":[{"APCD":"A"}],"ERUT":[{"APCD":"B"}]}')));
create view pg_temp.details as
    select flid from flight_gate union all select flid from flight_checkin union all select flid from flight_belt
        union all select flid from flight_stand_plan
    union all select flid from flight_chute union all select flid from flight_delay union all select flid
        from flight_bridge_op union all select flid from flight_chock_op
    union all select flid from flight_route_point;
select is((select count(*) from pg_temp.details where flid = 'D'), 10::bigint, 'a flight with ten details');
select is(tap.outcome(tap.plan_of('11SEP26')), 'SUCCEEDED', 'an empty plan');
select is((select count(*) from pg_temp.details where flid = 'D'), 0::bigint, 'all details are gone');
select is((select count(*) from flight_schd where flid = 'D'), 0::bigint, 'the flight is gone');

-- An ADFT does not count as a plan.
select tap.given(tap.plan_of('12SEP26', 'P', 'Q'));
select is(tap.outcome(tap.adft(tap.rec('P', '{"ESTT":"1"}'))), 'SUCCEEDED', 'ADFT for one of them');
select is(tap.members('2026-09-12'), array['P', 'Q'], 'the list stays');
select is((select version from schd_gen where fday = '2026-09-12'), 1::bigint, 'the ledger stays');
select is((select fday from flight_schd where flid = 'P'), date '2026-09-12', 'the day stays');
select is((select fday from flight_schd where flid = 'V'), null, 'a flight that came by ADFT has no day');
select is(tap.outcome(tap.plan_of('12SEP26', 'P', 'Q', 'V')), 'SUCCEEDED', 'until a plan takes it in');
select is((select fday from flight_schd where flid = 'V'), date '2026-09-12', 'then it has one');

-- D1 keep.
select tap.set('snapshot.absent_flight', 'keep');
select is(tap.send(tap.plan_of('12SEP26', 'P')) -> 'result',
          '{"fday": "2026-09-12", "version": 3, "records": 1, "written": 1, "created": 0, "deleted": 0, "events": 1}'::jsonb,
          'keep: nothing is deleted');
select is(tap.members('2026-09-12'), array['P'], 'keep: the list is replaced');
select is((select array_agg(flid::text order by flid) from flight_schd where fday = '2026-09-12'), array['P', 'Q', 'V'],
          'keep: the flights stay with their day');
select is(tap.events(tap.last_id()), array['STATE P 4'], 'keep: no tombstone');
select tap.set('snapshot.absent_flight', 'delete');
select is(tap.send(tap.plan_of('12SEP26')) -> 'result' ->> 'deleted', '1', 'delete again: only the list counts');
select is((select array_agg(flid::text order by flid) from flight_schd where fday = '2026-09-12'), array['Q', 'V'],
          'those that were kept before are no longer on it');

-- A deleted flight on another list.
select tap.given(tap.plan_of('13SEP26', 'X'), tap.plan_of('14SEP26', 'X'), tap.fdel('X'));
select is(tap.outcome(tap.plan_of('14SEP26')), 'SUCCEEDED', 'a member that is deleted already');
select is(tap.events(tap.last_id()), '{}'::text[], 'is not deleted twice');
select is(tap.outcome(tap.plan_of('13SEP26', 'X')), 'SUCCEEDED', 'and comes back with the next plan');
select is(tap.version('X'), 4::bigint, 'its version goes on after the tombstone');

select * from finish();
rollback;
