-- Everything that an installation makes in one schema, one row per property: kind, object, property, definition.
-- Used by `migrate verify`: two schemas are equal when their rows are, names of schema and roles aside.
with ns as (
    select n.oid, n.nspname, n.nspacl, n.nspowner from pg_catalog.pg_namespace n where n.nspname = %(schema)s
)
select 'schema', ns.nspname::text, 'owner', pg_get_userbyid(ns.nspowner)::text from ns
union all
select 'schema', ns.nspname, 'grant',
       (case a.grantee when 0 then 'PUBLIC' else pg_get_userbyid(a.grantee)::text end) || ' ' || a.privilege_type
  from ns cross join lateral aclexplode(ns.nspacl) a
union all
select case c.relkind when 'v' then 'view' when 'c' then 'type' else 'table' end, c.relname, 'owner', pg_get_userbyid(c.relowner)
  from pg_catalog.pg_class c join ns on ns.oid = c.relnamespace where c.relkind in ('r', 'v', 'c')
union all
select case c.relkind when 'v' then 'view' else 'table' end, c.relname, 'options', coalesce(array_to_string(c.reloptions, ', '), '')
  from pg_catalog.pg_class c join ns on ns.oid = c.relnamespace where c.relkind in ('r', 'v')
union all
select case c.relkind when 'v' then 'view' else 'table' end, c.relname, 'grant',
       (case a.grantee when 0 then 'PUBLIC' else pg_get_userbyid(a.grantee)::text end) || ' ' || a.privilege_type
  from pg_catalog.pg_class c join ns on ns.oid = c.relnamespace
 cross join lateral aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
 where c.relkind in ('r', 'v')
union all
select 'column', c.relname || '.' || a.attname, 'definition',
       format_type(a.atttypid, a.atttypmod) || case when a.attnotnull then ' not null' else '' end
           || case a.attidentity when '' then '' else ' identity ' || a.attidentity::text end
           || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')
  from pg_catalog.pg_class c join ns on ns.oid = c.relnamespace
  join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  left join pg_catalog.pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
 where c.relkind in ('r', 'v', 'c')
union all
select 'column', c.relname || '.' || a.attname, 'comment', col_description(c.oid, a.attnum)
  from pg_catalog.pg_class c join ns on ns.oid = c.relnamespace
  join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
 where c.relkind = 'r' and col_description(c.oid, a.attnum) is not null
union all
select case c.relkind when 'v' then 'view' else 'table' end, c.relname, 'comment', obj_description(c.oid, 'pg_class')
  from pg_catalog.pg_class c join ns on ns.oid = c.relnamespace
 where c.relkind in ('r', 'v') and obj_description(c.oid, 'pg_class') is not null
union all
select 'constraint', r.relname || '.' || c.conname, 'definition', pg_get_constraintdef(c.oid)
  from pg_catalog.pg_constraint c join ns on ns.oid = c.connamespace join pg_catalog.pg_class r on r.oid = c.conrelid
 where c.contype <> 'n'
union all
select 'index', i.indexname, 'definition', i.indexdef from pg_catalog.pg_indexes i where i.schemaname = %(schema)s
union all
select 'trigger', r.relname || '.' || t.tgname, 'definition', pg_get_triggerdef(t.oid)
  from pg_catalog.pg_trigger t join pg_catalog.pg_class r on r.oid = t.tgrelid join ns on ns.oid = r.relnamespace
 where not t.tgisinternal
union all
select 'view', c.relname, 'definition', pg_get_viewdef(c.oid)
  from pg_catalog.pg_class c join ns on ns.oid = c.relnamespace where c.relkind = 'v'
union all
select 'routine', p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')', x.property, x.definition
  from pg_catalog.pg_proc p join ns on ns.oid = p.pronamespace
 cross join lateral (
     select 'definition' as property, pg_get_functiondef(p.oid) as definition
     union all select 'owner', pg_get_userbyid(p.proowner)::text
     union all select 'comment', obj_description(p.oid, 'pg_proc')
     union all select 'grant', (case a.grantee when 0 then 'PUBLIC' else pg_get_userbyid(a.grantee)::text end) || ' ' || a.privilege_type
                 from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
 ) x
 where x.definition is not null
