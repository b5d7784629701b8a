-- Names: ours, in lower case, at most 30 bytes; no foreign keys (contract, FS-3.3-18).
begin;
set local search_path = msgx, tap;
select plan(13);

create view pg_temp.names as
    select 'relation' as what, c.relname::text as name from pg_class c where c.relnamespace = 'msgx'::regnamespace
    union all select 'column', a.attname::text from pg_attribute a join pg_class c on c.oid = a.attrelid
        where c.relnamespace = 'msgx'::regnamespace and a.attnum > 0 and not a.attisdropped
    union all select 'constraint', n.conname::text from pg_constraint n where n.connamespace = 'msgx'::regnamespace
    union all select 'routine', p.proname::text from pg_proc p where p.pronamespace = 'msgx'::regnamespace
    union all select 'parameter', a.name from pg_proc p cross join unnest(p.proargnames) a (name)
        where p.pronamespace = 'msgx'::regnamespace;
select is((select array_agg(distinct name) from pg_temp.names where octet_length(name) > 30 and name not like '%\_seq'),
          null, 'no name has more than 30 bytes');
select is((select array_agg(distinct name) from pg_temp.names where name !~ '^_?[a-z][a-z0-9_]*$'), null,
          'every name is lower snake case');
select is((select array_agg(n.conname::text) from pg_constraint n join pg_class c on c.oid = n.conrelid
            where n.connamespace = 'msgx'::regnamespace and n.conname !~ ('^' || c.relname || '(_[a-z_]+)?_' || case n.contype when 'p' then 'pk' when 'c' then 'ck' when 'u' then 'uk' else '?' end || '$')),
                null, 'every constraint is named <table>[_what]_pk|ck|uk');
select is((select array_agg(i.relname::text) from pg_class i join pg_index x on x.indexrelid = i.oid
          join pg_class c on c.oid = x.indrelid
            where c.relnamespace = 'msgx'::regnamespace and i.relname !~ ('^' || c.relname || '(_[a-z_]+)?_(pk|ix|ux)$')),
                null, 'every index is named <table>_<what>_pk|ix|ux');
select is((select array_agg(c.relname::text) from pg_class c
          where c.relnamespace = 'msgx'::regnamespace and c.relkind = 'r'
            and not exists (select 1 from pg_constraint n where n.conrelid = c.oid and n.contype = 'p')), null,
                'every table has a primary key');
select is((select count(*) from pg_constraint where connamespace = 'msgx'::regnamespace and contype = 'f'), 0::bigint,
          'there is no foreign key');
select is((select count(*) from pg_trigger t join pg_class c on c.oid = t.tgrelid
          where c.relnamespace = 'msgx'::regnamespace), 0::bigint, 'nor a trigger');
select is((select array_agg(pg_get_constraintdef(n.oid)) from pg_constraint n
          where n.conname = 'flight_route_point_pk'), array['PRIMARY KEY (flid, route_kind, ordinal)'],
          'the key of the route table holds the kind (D22)');
select is((select count(*) from pg_constraint n join pg_class c on c.oid = n.conrelid
          where n.contype = 'p' and n.connamespace = 'msgx'::regnamespace and pg_get_constraintdef(n.oid) = 'PRIMARY KEY (flid, ordinal)'),
          8::bigint, 'the other eight detail tables: flid, ordinal');
select is((select array_agg(distinct pg_get_userbyid(c.relowner)::text) from pg_class c
          where c.relnamespace = 'msgx'::regnamespace), array['msgx_owner'], 'one owner of all relations');
select is((select array_agg(distinct pg_get_userbyid(p.proowner)::text) from pg_proc p
          where p.pronamespace = 'msgx'::regnamespace), array['msgx_owner'], 'and of all routines');
select is((select rolcanlogin or rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls
          from pg_roles where rolname = 'msgx_owner'), false, 'who cannot log in and has no special right');
select is((select array_agg(column_name::text) from information_schema.columns
          where table_schema = 'msgx' and data_type = 'timestamp without time zone'), null,
          'every instant knows its zone');

select * from finish();
rollback;
