-- The operating day of a package (D9).
begin;
set local search_path = msgx, tap;
select plan(40);

create function pg_temp.day(p_header text, variadic p_times text[] default '{}') returns text
language plpgsql
as $$
begin
    return _snapshot_day(5, tap.dnld(p_header, variadic (
        select coalesce(array_agg(tap.rec('F' || t.ord,
            case when t.at is null then '{}' else jsonb_build_object(case when t.at like 'STD=%' then 'STD' else 'SODT' end,
            replace(t.at, 'STD=', '')) end) order by t.ord), '{}')
          from unnest(p_times) with ordinality as t (at, ord))))::text;
exception when others then
    return sqlstate || ' ' || sqlerrm;
end;
$$;

-- The header day.
select is(pg_temp.day('09SEP26'), '2026-09-09', 'DDMONYY');
select is(pg_temp.day('09sEp26'), '2026-09-09', 'in any case');
select is(pg_temp.day('2026-09-09'), '2026-09-09', 'ISO');
select is(pg_temp.day('09SEP26', '10SEP260710', '11SEP260710'), '2026-09-09', 'it wins over the records');
select is(pg_temp.day('09SEP26', 'rubbish', null), '2026-09-09', 'whose times are then not parsed');
select is(pg_temp.day(h), 'MX101 message 5, tag FDAY: the header day is no date (DDMONYY or YYYY-MM-DD)',
          format('a header day that is no date: %s', to_json(h)))
  from unnest(array['', ' ', '31FEB26', '09SEP260710', '09SEP26 ', '20260909', '2026-09-31', '2026-9-9', '09/09/26',
      'D', e'2026-09-09\n', '2026-09-09T00:00']) h;
select is(pg_temp.day('', '09SEP260710'),
          'MX101 message 5, tag FDAY: the header day is no date (DDMONYY or YYYY-MM-DD)',
          'an empty header day is not taken from the records');
select is(tap.state_of($$select _snapshot_day(5, '{"schedule":{"FDAY":null},"flights":[]}')$$), 'MX101',
          'a header day that is null');

-- The day of the records.
select is(pg_temp.day(null, '09SEP260710'), '2026-09-09', 'SODT');
select is(pg_temp.day(null, 'STD=09SEP260710'), '2026-09-09', 'else STD');
select is(pg_temp.day(null, '09SEP260000', '09SEP262359', 'STD=09SEP261200'), '2026-09-09', 'all of one day');
select is(_snapshot_day(5, tap.dnld(null, tap.rec('F1', '{"SODT":"09SEP260710","STD":"10SEP260710"}')))::text,
          '2026-09-09', 'SODT is looked at first');
select is(_snapshot_day(5, tap.dnld(null, tap.rec('F1', '{"SODT":"","STD":"10SEP260710"}')))::text, '2026-09-10',
          'an empty SODT is none');
select is(pg_temp.day(null, '09SEP260710', '10SEP260710'),
          'MX101 message 5, tag SODT: the records belong to 2 operating days and there is no header FDAY; the whole package is refused',
          'two days');
select is(pg_temp.day(null, '09SEP260710', t),
          'MX101 message 5, flight F2, tag SODT: without a header FDAY every record needs SODT (or STD) as DDMONYYHHMM',
          format('a record without a time: %s', to_json(t)))
  from unnest(array[null, '', '09SEP26', '2026-09-09', '31FEB260710', '09SEP262400', '0710']) t;
select is(pg_temp.day(null), 'MX101 message 5, tag FDAY: a plan without records needs a header FDAY',
          'no record and no header day');

-- When the day starts.
select tap.set('schedule.day_starts_at', '04:00');
select is(pg_temp.day(null, '10SEP260359'), '2026-09-09', 'before 04:00 it is the day before');
select is(pg_temp.day(null, '10SEP260400'), '2026-09-10', 'from 04:00 on it is the day');
select is(pg_temp.day(null, '09SEP260400', '10SEP260359'), '2026-09-09', 'the night belongs to the day before');
select is(left(pg_temp.day(null, '10SEP260359', '10SEP260400'), 5), 'MX101', 'a package over the border has two days');
select is(pg_temp.day('10SEP26', '10SEP260100'), '2026-09-10', 'a header day is not shifted');
select is(pg_temp.day(null, '01MAR240100'), '2024-02-29', 'over the end of a month');
select is(pg_temp.day(null, '01JAN260359'), '2025-12-31', 'over the end of a year');

select * from finish();
rollback;
