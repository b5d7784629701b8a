-- Roles and schema of one airport. Variables: schema. Idempotent.
-- <schema>_owner owns everything and cannot log in; _driver, _operator and _report are granted to login roles.
select set_config('msgx.schema', :'schema', false);

do $$
declare
    v_schema text := current_setting('msgx.schema');
    v_role   text;
begin
    if v_schema !~ '^[a-z][a-z0-9_]{0,19}$' then
        raise exception 'schema name % is not allowed: a lower-case letter, then up to 19 lower-case letters, digits or _', v_schema;
    end if;
    if current_setting('server_encoding') <> 'UTF8' or current_setting('server_version_num')::integer < 150000 then
        raise exception using errcode = 'MX302', message = format(
            'msgx needs PostgreSQL 15 or newer and a database in UTF8; this is %s in %s',
            current_setting('server_version'), current_setting('server_encoding'));
    end if;
    if exists (select 1 from pg_catalog.pg_namespace n
                where n.nspname = v_schema and pg_catalog.pg_get_userbyid(n.nspowner) <> v_schema || '_owner'
                  and to_regclass(format('%I.schema_history', v_schema)) is null)
    then
        raise exception using errcode = 'MX302', message = format(
            'schema %s is there already and is not ours; drop it, or install under another name', v_schema);
    end if;
    foreach v_role in array array['owner', 'driver', 'operator', 'report'] loop
        if not exists (select 1 from pg_catalog.pg_roles r where r.rolname = v_schema || '_' || v_role) then
            begin
                execute format('create role %I nologin', v_schema || '_' || v_role);
            exception when duplicate_object or unique_violation then
                -- Roles belong to the server: an installation in another database was faster.
                null;
            end;
        end if;
    end loop;
    if not pg_catalog.pg_has_role(current_user, v_schema || '_owner', 'member') then
        execute format('grant %I to current_user', v_schema || '_owner');
    end if;
    if not exists (select 1 from pg_catalog.pg_namespace n where n.nspname = v_schema) then
        execute format('create schema %I authorization %I', v_schema, v_schema || '_owner');
    end if;
    execute format('revoke all on schema %I from public', v_schema);
    execute format('grant usage on schema %I to %I, %I, %I',
                   v_schema, v_schema || '_driver', v_schema || '_operator', v_schema || '_report');
end;
$$;
