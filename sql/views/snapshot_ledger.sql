-- Plans by operating day, beside what the flights say today.
drop view if exists snapshot_ledger;

create view snapshot_ledger as
select g.fday, g.version, g.last_message_id, g.recs, g.applied_at,
       (select count(*) from schd_gen_flid m where m.fday = g.fday) as members,
       (select count(*) from flight_schd f where f.fday = g.fday) as owned_flights
  from schd_gen g;

comment on view snapshot_ledger is 'Latest plan of each operating day: version, message, members (FS-3.3).';
