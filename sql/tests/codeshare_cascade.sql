-- Shared flights go with their main: one level, whatever their day, except those the package lists (D23, US-05/4).
begin;
set local search_path = msgx, tap;
select plan(24);

select tap.start();
create function pg_temp.set_up() returns void language sql as $$
    select tap.given(
        tap.dnld('10SEP26', tap.rec('S2', '{"FLNO":"YY2","MAID":"M"}')),
        tap.dnld('09SEP26', tap.rec('M', '{"FLNO":"ZZ1","MAFL":"YY1,YY2"}'), tap.rec('S1', '{"FLNO":"YY1","MAID":"M"}'),
            tap.rec('O', '{"FLNO":"ZZ9"}'),
                            tap.rec('T1', '{"FLNO":"XX1","MAID":"S1"}'), tap.rec('OWN', '{"MAID":"OWN"}'),
                                tap.rec('NONE', '{"MAID":""}')),
        tap.adft(tap.rec('S3', '{"FLNO":"YY3","MAID":"M"}')))
$$;
select pg_temp.set_up();

-- By FDEL.
select is(tap.send(tap.fdel('M')) -> 'result', '{"records": 1, "deleted": 4, "events": 8}'::jsonb,
          'the main and its three shared flights');
select is(tap.flids(), array['NONE', 'O', 'OWN', 'T1'],
          'of this day, of another day, of none; a shared flight of a shared flight stays');
select is(tap.events(tap.last_id()), array['NOTICE M 3', 'TOMBSTONE M 3', 'NOTICE S1 2', 'TOMBSTONE S1 2',
          'NOTICE S2 2', 'TOMBSTONE S2 2', 'NOTICE S3 2', 'TOMBSTONE S3 2'],
          'a notice and a tombstone each, the cascade by FLID at the end');
select is((select array_agg(distinct payload ->> 'CHANGED') from msg_event
          where message_id = tap.last_id() and kind = 'NOTICE'), array['["FDEL"]'], 'every notice says FDEL');
select is((select array_agg(flid::text order by flid) from flight_tombstone), array['M', 'S1', 'S2', 'S3'],
          'a tombstone each');
select is((select count(*) from consistency_check where anomaly <> 'shared-without-main'), 0::bigint,
          'nothing else is odd');

-- MAID = own FLID or '' is no main.
select is(tap.send(tap.fdel('OWN')) -> 'result' ->> 'deleted', '1', 'a flight that names itself goes alone');
select is(tap.send(tap.fdel('NONE')) -> 'result' ->> 'deleted', '1', 'an empty MAID names nobody');
select is(tap.flids(), array['O', 'T1'], 'nobody else went');

-- By plan.
select pg_temp.set_up();
select is(tap.send(tap.dnld('09SEP26', tap.rec('O'))) -> 'result' ->> 'deleted', '7', 'a plan without the main');
select is(tap.flids(), array['O'], 'takes its shared flights along, whatever their day');
select is(tap.events(tap.last_id()), array['STATE O 3', 'TOMBSTONE M 6', 'TOMBSTONE NONE 4', 'TOMBSTONE OWN 4',
          'TOMBSTONE S1 4', 'TOMBSTONE S2 4', 'TOMBSTONE S3 4', 'TOMBSTONE T1 3'],
          'tombstones only, no notices; all deletions by FLID');
select is((select count(*) from msg_event where message_id = tap.last_id() and kind = 'NOTICE'), 0::bigint,
          'a plan gives no notice');

-- What the package lists stays.
select pg_temp.set_up();
select is(tap.send(tap.dnld('09SEP26', tap.rec('S1'), tap.rec('S3'),
          tap.rec('NEW', '{"MAID":"M"}'))) -> 'result' ->> 'deleted', '6',
          'a plan without the main that lists two of its shared flights');
select is(tap.flids(), array['NEW', 'S1', 'S3'], 'those it lists stay, also a new one that names the old main');
select is((select count(*) from consistency_check), 0::bigint, 'which is no anomaly: the sender says so');
select is(tap.send(tap.plan_of('09SEP26', 'S1', 'S3', 'NEW')) -> 'result' ->> 'deleted', '0', 'and they go on living');
select tap.given(tap.plan_of('09SEP26'));
select is(tap.flids(), '{}'::text[], 'until they are gone');

-- The main stays, a shared flight goes.
select pg_temp.set_up();
select tap.version('M') as v \gset
select is(tap.send(tap.dnld('09SEP26', tap.rec('M'), tap.rec('O'), tap.rec('T1'), tap.rec('OWN'),
          tap.rec('NONE'))) -> 'result' ->> 'deleted', '1', 'a plan without a shared flight');
select is(tap.flight('M') ->> 'MAFL', 'YY1,YY2,YY3', 'never touches the list of the main beyond what it carries');
select is(tap.version('M'), :v + 1::bigint, 'the main took one version, of the plan');

-- A missing main is fine.
select is(tap.outcome(tap.fdel('NOBODY')), 'SUCCEEDED', 'a missing target is an idempotent success');

-- D1 keep does not cascade.
select tap.set('snapshot.absent_flight', 'keep');
select is(tap.send(tap.dnld('09SEP26')) -> 'result' ->> 'deleted', '0', 'keep: nothing goes, nothing cascades');
select is(tap.flids() @> array['M', 'S2', 'S3'], true, 'keep: all are there');

select * from finish();
rollback;
