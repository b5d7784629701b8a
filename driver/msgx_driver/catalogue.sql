-- Everything that an installation makes in one schema, one row per property: kind, object, parent, property, definition.
-- Used by `migrate verify`: two schemas are equal when their rows are, names of schema and roles aside. Every object has
-- one row `definition`; parent is the table or view without which there would be no such object.
with ns as (
    select n.oid, n.nspname::text as name, n.nspacl, n.nspowner
      from pg_catalog.pg_namespace n where n.nspname = %(schema)s
),
own_role as (
    select r.* from pg_catalog.pg_roles r, ns
     where r.rolname = any (array[ns.name || '_owner', ns.name || '_driver', ns.name || '_operator', ns.name || '_report'])
),
-- What lies in the schema, of whatever kind; what an extension brought belongs to the extension.
object as (
    select d.classid, d.objid, c.oid as relid, p.oid as procid,
           case when p.oid is not null then 'routine' else i.type end as kind,
           coalesce(
               p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')',
               c.relname::text,
               replace(i.identity, quote_ident(ns.name) || '.', '')) as name,
           coalesce((
               select o.refobjid from pg_catalog.pg_depend o
                where c.relkind = 'S' and o.classid = d.classid and o.objid = d.objid
                  and o.refclassid = 'pg_class'::regclass and o.refobjsubid > 0 and o.deptype in ('a', 'i')), 0) as owned_by
      from ns
      join pg_catalog.pg_depend d on d.refclassid = 'pg_namespace'::regclass and d.refobjid = ns.oid
     cross join lateral pg_identify_object(d.classid, d.objid, 0) i
      left join pg_catalog.pg_class c
        on d.classid = 'pg_class'::regclass and c.oid = d.objid
        or d.classid = 'pg_type'::regclass and c.reltype = d.objid
      left join pg_catalog.pg_proc p on d.classid = 'pg_proc'::regclass and p.oid = d.objid
     where i.type not like 'publication%%'
       and not exists (
               select 1 from pg_catalog.pg_depend e
                where e.classid = d.classid and e.objid = d.objid and e.deptype = 'e')
),
relation as (
    select c.*, o.kind, o.name, coalesce(t.relname::text, '') as parent
      from object o join pg_catalog.pg_class c on c.oid = o.relid
      left join pg_catalog.pg_class t on t.oid = o.owned_by
),
routine as (
    select p.*, o.kind, o.name from object o join pg_catalog.pg_proc p on p.oid = o.procid
),
attribute as (
    select 'column' as kind, r.name || '.' || a.attname as name, r.name as parent, r.kind as of_kind, r.relowner, a.*
      from relation r join pg_catalog.pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
     where r.relkind <> 'S'
),
acl as (
    select 'schema' as kind, ns.name, '' as parent, ns.nspowner as owner, coalesce(ns.nspacl, acldefault('n', ns.nspowner)) as items from ns
    union all
    select r.kind, r.name, r.parent, r.relowner,
           case r.relkind when 'c' then coalesce(t.typacl, acldefault('T', t.typowner))
                          when 'S' then coalesce(r.relacl, acldefault('s', r.relowner))
                          else coalesce(r.relacl, acldefault('r', r.relowner)) end
      from relation r left join pg_catalog.pg_type t on t.oid = r.reltype
    union all
    select a.kind, a.name, a.parent, a.relowner, a.attacl from attribute a where a.attacl is not null
    union all
    select p.kind, p.name, '', p.proowner, coalesce(p.proacl, acldefault('f', p.proowner)) from routine p
)
select 'schema', ns.name, '', x.property, x.definition
  from ns cross join lateral (values ('definition', ''), ('owner', pg_get_userbyid(ns.nspowner)::text)) x (property, definition)
union all
select o.kind, o.name, '', 'definition', ''
  from object o where o.relid is null and o.procid is null
union all
select o.kind, o.name, '', 'comment', obj_description(o.objid, o.classid::regclass::text)
  from object o where obj_description(o.objid, o.classid::regclass::text) is not null
union all
-- Owners follow those of their table where a sequence belongs to a column.
select r.kind, r.name, r.parent, 'owner', pg_get_userbyid(r.relowner)::text from relation r where r.parent = ''
union all
select p.kind, p.name, '', 'owner', pg_get_userbyid(p.proowner)::text from routine p
union all
select a.kind, a.name, a.parent, 'grant',
       case g.grantee when 0 then 'PUBLIC' when a.owner then 'OWNER' else pg_get_userbyid(g.grantee)::text end
           || ' ' || g.privilege_type || w.option
  from acl a cross join lateral aclexplode(a.items) g
 cross join lateral (select '' as option union all select ' WITH GRANT OPTION' where g.is_grantable) w
union all
select r.kind, r.name, r.parent, 'definition',
       case when r.relkind in ('v', 'm') then pg_get_viewdef(r.oid)
            when r.relkind = 'S' then (
                select concat_ws(' ', format_type(s.seqtypid, null), s.seqstart, s.seqincrement, s.seqmin, s.seqmax, s.seqcache, s.seqcycle)
                  from pg_catalog.pg_sequence s where s.seqrelid = r.oid)
            else concat_ws(' ', r.relpersistence, (
                select string_agg(i.inhparent::regclass::text, ' ' order by i.inhseqno)
                  from pg_catalog.pg_inherits i where i.inhrelid = r.oid)) end
  from relation r
union all
select r.kind, r.name, '', 'child', i.inhrelid::regclass::text
  from relation r join pg_catalog.pg_inherits i on i.inhparent = r.oid
union all
select r.kind, r.name, '', 'options', coalesce(array_to_string(r.reloptions, ', '), '') from relation r
union all
select r.kind, r.name, '', 'row security', concat_ws(' ', r.relrowsecurity, r.relforcerowsecurity) from relation r
union all
select p.kind, p.name, '', 'definition', case p.prokind when 'a' then 'aggregate' else pg_get_functiondef(p.oid) end from routine p
union all
-- The columns of a view are in its text.
select a.kind, a.name, a.parent, 'definition',
       format_type(a.atttypid, a.atttypmod)
           || case when a.attcollation <> t.typcollation then ' collate ' || a.attcollation::regcollation else '' end
           || case when a.attnotnull then ' not null' else '' end
           || case a.attidentity when '' then '' else ' identity ' || a.attidentity::text end
           || case a.attgenerated when '' then '' else ' generated ' || a.attgenerated::text end
           || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')
  from attribute a join pg_catalog.pg_type t on t.oid = a.atttypid
  left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
 where a.of_kind <> 'view'
union all
select a.kind, a.name, a.parent, 'comment', col_description(a.attrelid, a.attnum)
  from attribute a where col_description(a.attrelid, a.attnum) is not null
union all
select 'constraint', r.name || '.' || c.conname, r.name, 'definition',
       pg_get_constraintdef(c.oid)
           || case when c.contype in ('p', 'u', 'x') then ' by ' || pg_get_indexdef(c.conindid) else '' end
           || case when c.convalidated then '' else ' not valid' end
           || case when i.indisvalid and i.indisready then '' when i.indexrelid is null then '' else ' invalid index' end
  from pg_catalog.pg_constraint c join relation r on r.oid = c.conrelid
  left join pg_catalog.pg_index i on i.indexrelid = c.conindid
 where c.contype not in ('n', 't') or not c.convalidated
union all
select 'index', x.relname::text, r.name, 'definition',
       pg_get_indexdef(i.indexrelid) || case when i.indisvalid and i.indisready then '' else ' invalid' end
  from pg_catalog.pg_index i join relation r on r.oid = i.indrelid join pg_catalog.pg_class x on x.oid = i.indexrelid
 where not exists (select 1 from pg_catalog.pg_constraint c where c.conindid = i.indexrelid and c.conrelid = i.indrelid and c.contype in ('p', 'u', 'x'))
union all
select 'trigger', r.name || '.' || t.tgname, r.name, 'definition', pg_get_triggerdef(t.oid) || ' ' || t.tgenabled::text
  from pg_catalog.pg_trigger t join relation r on r.oid = t.tgrelid
 where not t.tgisinternal or t.tgenabled <> 'O'
union all
select 'rule', r.name || '.' || w.rulename, r.name, 'definition', pg_get_ruledef(w.oid) || ' ' || w.ev_enabled::text
  from pg_catalog.pg_rewrite w join relation r on r.oid = w.ev_class
 where w.rulename <> '_RETURN'
union all
select 'policy', r.name || '.' || p.polname, r.name, 'definition',
       concat_ws(' ', p.polcmd, p.polpermissive, p.polroles::regrole[]::text,
                 pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
  from pg_catalog.pg_policy p join relation r on r.oid = p.polrelid
union all
-- Roles belong to the server; who is a member of ours is the site's business, what ours are members of is not.
select 'role', r.rolname::text, '', 'definition', '' from own_role r
union all
select 'role', r.rolname::text, '', 'attribute', x.attribute
  from own_role r cross join lateral (
      values (r.rolsuper, 'SUPERUSER'), (r.rolcreaterole, 'CREATEROLE'), (r.rolcreatedb, 'CREATEDB'), (r.rolcanlogin, 'LOGIN'),
             (r.rolreplication, 'REPLICATION'), (r.rolbypassrls, 'BYPASSRLS'), (r.rolinherit, 'INHERIT')) x (is_set, attribute)
 where x.is_set
union all
select 'role', r.rolname::text, '', 'setting', unnest(s.setconfig)
  from own_role r join pg_catalog.pg_db_role_setting s on s.setrole = r.oid
 where s.setdatabase in (0, (select d.oid from pg_catalog.pg_database d where d.datname = current_database()))
union all
select 'role', r.rolname::text, '', 'membership in', pg_get_userbyid(m.roleid)::text
  from own_role r join pg_catalog.pg_auth_members m on m.member = r.oid
union all
-- Default privileges of the whole database change what a migration makes; those of the schema are objects of it.
select i.type, i.identity, '', 'definition', ''
  from own_role r join pg_catalog.pg_default_acl a on a.defaclrole = r.oid and a.defaclnamespace = 0
 cross join lateral pg_identify_object('pg_default_acl'::regclass, a.oid, 0) i
