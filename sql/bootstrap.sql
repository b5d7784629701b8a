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
    foreach v_role in array array['owner', 'driver', 'operator', 'report'] loop
        if not exists (select 1 from pg_catalog.pg_roles r where r.rolname = v_schema || '_' || v_role) then
            execute format('create role %I nologin', v_schema || '_' || v_role);
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
