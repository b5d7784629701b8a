-- Removes one airport and everything it knows, with psql alone.
--   psql -v schema=msgx -f sql/uninstall.sql <database>
-- Needs the rights of the installation. A role that another database still uses stays, and is named.
\set ON_ERROR_STOP on
\if :{?schema}
\else
  \set schema msgx
\endif
\set QUIET on
\o /dev/null
select set_config('msgx.schema', :'schema', false);
set client_min_messages = warning;
begin;
do $$
declare
    v_schema text := current_setting('msgx.schema');
    v_role   text;
begin
    if not exists (
        select 1 from pg_catalog.pg_tables t where t.schemaname = v_schema and t.tablename = 'pipeline_lock')
    then
        raise exception 'schema % in this database is no msgx schema; nothing was removed', v_schema;
    end if;
    execute format('drop schema %I cascade', v_schema);
    foreach v_role in array array['driver', 'operator', 'report', 'owner'] loop
        v_role := v_schema || '_' || v_role;
        if exists (
            select 1 from pg_catalog.pg_shdepend d
              join pg_catalog.pg_roles r on r.oid = d.refobjid and d.refclassid = 'pg_catalog.pg_authid'::regclass
             where r.rolname = v_role)
        then
            continue;
        end if;
        execute format('drop role if exists %I', v_role);
    end loop;
end;
$$;
commit;
\o
\pset tuples_only on
\pset format unaligned
select 'role ' || r.rolname || ' is used in another database and stays'
  from pg_catalog.pg_roles r where r.rolname in (:'schema' || '_driver', :'schema' || '_operator', :'schema' || '_report', :'schema' || '_owner')
 order by 1;
\echo schema :schema is removed
