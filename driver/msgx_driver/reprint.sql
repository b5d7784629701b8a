-- Makes checks, partial indexes and views of the schema msgx.reprint anew from what PostgreSQL prints of them, as a
-- restored dump does: the second print may differ from the first without any difference in meaning.
do $$
declare
    v_schema name := current_setting('msgx.reprint');
    v_text   text;
begin
    for v_text in
        select format('alter table %s drop constraint %I, add constraint %I %s', c.conrelid::regclass, c.conname, c.conname, pg_get_constraintdef(c.oid))
          from pg_catalog.pg_constraint c
         where c.connamespace = v_schema::regnamespace and c.contype = 'c'
        union all
        select format('drop index %s; %s', i.indexrelid::regclass, pg_get_indexdef(i.indexrelid))
          from pg_catalog.pg_index i join pg_catalog.pg_class r on r.oid = i.indexrelid
         where r.relnamespace = v_schema::regnamespace
           and not exists (select 1 from pg_catalog.pg_constraint k where k.conindid = i.indexrelid)
        union all
        select format('create or replace view %s as %s', c.oid::regclass, pg_get_viewdef(c.oid))
          from pg_catalog.pg_class c
         where c.relnamespace = v_schema::regnamespace and c.relkind = 'v'
    loop
        execute v_text;
    end loop;
end;
$$;
