-- Every table, column, view, type and routine says what it is.
begin;
set local search_path = msgx, tap;
select plan(47);

create view pg_temp.rel as select c.oid, c.relname::text as name,
    c.relkind from pg_class c where c.relnamespace = 'msgx'::regnamespace and c.relkind in ('r', 'v');
select ok(coalesce(length(obj_description(r.oid, 'pg_class')), 0) > 10, format('%s has a comment', r.name))
          from pg_temp.rel r order by r.name;
select is((select array_agg(r.name || '.' || a.attname order by r.name, a.attnum) from pg_temp.rel r
          join pg_attribute a on a.attrelid = r.oid
            where r.relkind = 'r' and a.attnum > 0 and not a.attisdropped and coalesce(length(col_description(r.oid,
                a.attnum)), 0) < 3), null, 'every column of every table has a comment');
select is((select array_agg(t.typname::text) from pg_type t join pg_class c on c.oid = t.typrelid
          where c.relnamespace = 'msgx'::regnamespace and c.relkind = 'c'
              and obj_description(t.oid, 'pg_type') is null), null, 'every composite type has a comment');
select is((select array_agg(p.proname::text) from pg_proc p
          where p.pronamespace = 'msgx'::regnamespace and coalesce(length(obj_description(p.oid, 'pg_proc')), 0) < 10),
          null, 'every routine has a comment');
select cmp_ok((select count(*) from pg_temp.rel where relkind = 'r'), '>=', 28::bigint, 'the tables are there');
select cmp_ok((select count(*) from pg_proc where pronamespace = 'msgx'::regnamespace), '>=', 45::bigint,
          'the routines are there');

select * from finish();
rollback;
