-- Every PL/pgSQL routine passes plpgsql_check with all of its warnings that are meant.
begin;
set local search_path = msgx, tap;
select plan(86);

select is((select array_agg(c.lineno || ' ' || c.level || ' ' || c.message order by c.lineno)
          from plpgsql_check_function_tb(p.oid, fatal_errors => false, other_warnings => true, extra_warnings => true,
          security_warnings => true) c), null, p.proname || ' has no finding')
  from pg_proc p join pg_language l on l.oid = p.prolang
      where p.pronamespace = 'msgx'::regnamespace and l.lanname = 'plpgsql' order by p.proname;
select cmp_ok((select count(*) from pg_proc p join pg_language l on l.oid = p.prolang
          where p.pronamespace = 'msgx'::regnamespace and l.lanname = 'plpgsql'), '>=', 35::bigint,
          'the routines were looked at');
select lives_ok(format('select * from %I where false', c.relname), format('view %s is sound', c.relname))
          from pg_class c where c.relnamespace = 'msgx'::regnamespace and c.relkind = 'v' order by c.relname;

select * from finish();
rollback;
