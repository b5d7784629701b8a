-- Days and times of SIS with an own month table (D9, FS-6.3).
begin;
set local search_path = msgx, tap;
select plan(74);

select is(_sis_day(t), e::timestamp, format('%s', t))
  from (values ('09SEP26', '2026-09-09'), ('09SEP260710', '2026-09-09 07:10'), ('01JAN00', '2000-01-01'),
      ('31DEC992359', '2099-12-31 23:59'),
               ('09sep26', '2026-09-09'), ('09Sep260000', '2026-09-09'), ('29FEB24', '2024-02-29'),
                   ('29FEB00', '2000-02-29'),
               ('31JAN26', '2026-01-31'), ('28FEB26', '2026-02-28'), ('31MAR26', '2026-03-31'),
                   ('30APR26', '2026-04-30'), ('31MAY26', '2026-05-31'),
               ('30JUN26', '2026-06-30'), ('31JUL26', '2026-07-31'), ('31AUG26', '2026-08-31'),
                   ('30SEP26', '2026-09-30'), ('31OCT26', '2026-10-31'),
               ('30NOV26', '2026-11-30'), ('31DEC26', '2026-12-31'), ('2026-09-09', '2026-09-09'),
                   ('2024-02-29', '2024-02-29'), ('2000-12-31', '2000-12-31')) v (t, e);
select is(_sis_day(t), null, format('no day: %s', to_json(t)))
  from unnest(array['', ' ', '31FEB26', '30FEB24', '29FEB25', '31APR26', '31JUN26', '31SEP26', '31NOV26', '00SEP26',
      '32SEP26', '9SEP26', '009SEP26', '09SEPT26', '09SEP2026',
                    '09XXX26', '09SEP26 ', ' 09SEP26', '09SEP26071', '09SEP2607100', '09SEP262400', '09SEP260760',
                        '09 SEP 26', '09-SEP-26', '09SEP2x', 'x9SEP26',
                    '2026-09-31', '2026-13-01', '2026-00-01', '2026-09-00', '2026-9-9', '1999-12-31', '2100-01-01',
                        '2026/09/09', '20260909', '2026-09-09T07:10', e'09SEP26\n', e'2026-09-09\n',
                    '09SEPT6', '０9SEP26', '09ſEP26', '09SEP26+1', '-9SEP26', 'today', 'now', 'infinity']) t;
select is(_sis_day(null), null, 'null is no day');
select is(_day_of_month('2026-02-01', 28), timestamp '2026-02-28', 'the last day of a month');
select is(_day_of_month('2026-02-01', 29), null, 'the day after it');
select is(_day_of_month('2026-02-01', 0), null, 'day 0');

-- Neither locale nor zone of the server counts.
set local timezone = 'America/Los_Angeles';
set local datestyle = 'SQL, MDY';
select is(_sis_day('09SEP260000'), timestamp '2026-09-09 00:00', 'another zone and date style change nothing');

select * from finish();
rollback;
