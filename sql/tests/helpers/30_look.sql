-- What the tests look at, in forms that compare in one line.

create function tap.flight(p_flid text) returns jsonb
language sql stable
as $$
    select p.doc from msgx.flight_projection(array[p_flid]) as p (doc)
$$;

create function tap.flids() returns text[]
language sql stable
as $$
    select coalesce(array_agg(f.flid::text order by f.flid collate "C"), '{}') from msgx.flight_schd f
$$;

create function tap.version(p_flid text) returns bigint
language sql stable
as $$
    select f.state_version from msgx.flight_schd f where f.flid = p_flid
$$;

create function tap.members(p_fday date) returns text[]
language sql stable
as $$
    select coalesce(array_agg(g.flid::text order by g.flid collate "C"), '{}') from msgx.schd_gen_flid g
        where g.fday = p_fday
$$;

-- Events of one message in order: KIND FLID version.
create function tap.events(p_message_id bigint) returns text[]
language sql stable
as $$
    select coalesce(array_agg(format('%s %s %s', e.kind, e.flid, e.state_version) order by e.event_id), '{}')
      from msgx.msg_event e where e.message_id = p_message_id
$$;

create function tap.last_id() returns bigint
language sql stable
as $$
    select max(s.message_id) from msgx.proc_state s
$$;

-- Content of every table of the schema: a name and a hash each.
create function tap.content() returns jsonb
language plpgsql stable
as $$
declare
    v_table  text;
    v_hash   text;
    v_result jsonb := '{}'::jsonb;
begin
    for v_table in select c.relname from pg_catalog.pg_class c
        where c.relnamespace = 'msgx'::regnamespace and c.relkind = 'r' loop
        execute format('select md5(string_agg(t::text, e''\n'' order by t::text)) from msgx.%I t', v_table) into v_hash;
        v_result := v_result || jsonb_build_object(v_table, v_hash);
    end loop;
    return v_result;
end;
$$;

-- Names of the tables whose content differs.
create function tap.changed(p_before jsonb) returns text[]
language sql stable
as $$
    select coalesce(array_agg(b.key order by b.key collate "C"), '{}')
      from jsonb_each(p_before) b where b.value is distinct from tap.content() -> b.key
$$;

-- Runs SQL and says which SQLSTATE came of it; 00000 = none.
create function tap.state_of(p_sql text) returns text
language plpgsql
as $$
begin
    execute p_sql;
    return '00000';
exception when others then
    return sqlstate;
end;
$$;

create function tap.reason(p_message_id bigint default null) returns text
language sql stable
as $$
    select s.reason::text from msgx.proc_state s where s.message_id = coalesce(p_message_id, tap.last_id())
$$;

-- First column of the first row of a query run under another role, or the SQLSTATE it ends with.
create function tap.as_role(p_role text, p_sql text) returns text
language plpgsql
as $$
declare
    v_result text;
begin
    execute format('set local role %I', p_role);
    execute p_sql into v_result;
    reset role;
    return v_result;
exception when others then
    return sqlstate;
end;
$$;

-- The same for a command that gives no row: done, or the SQLSTATE.
create function tap.do_as(p_role text, p_sql text) returns text
language plpgsql
as $$
begin
    execute format('set local role %I', p_role);
    execute p_sql;
    reset role;
    return 'done';
exception when others then
    return sqlstate;
end;
$$;
