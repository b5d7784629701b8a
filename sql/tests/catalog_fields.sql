-- The catalogue of fields agrees with the tables, the writing and the projecting routine (engineering, contract 3).
begin;
set local search_path = msgx, tap;
select plan(34);

create view pg_temp.col as
    select c.relname::text as tab, a.attname::text as col, format_type(a.atttypid, a.atttypmod) as type
      from pg_attribute a join pg_class c on c.oid = a.attrelid
          where c.relnamespace = 'msgx'::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped;
create view pg_temp.expected as
    select f.tag::text, 'flight_schd' as tab, f.target::text as col,
        f.width from msgx.flight_field f where f.kind in ('scalar', 'text')
    union all select f.tag, 'flight_schd', f.target || lower(a),
        case a when 'TEXT' then 1000 else f.width end from msgx.flight_field f cross join unnest(f.attrs) a
        where f.kind = 'object'
    union all select f.tag, f.target, case a when f.seq_tag then 'source_seq' else lower(a) end,
        case a when 'TEXT' then 1000 else f.width end from msgx.flight_field f cross join unnest(f.attrs) a
        where f.kind = 'collection';
create view pg_temp.src as select p.proname::text as name, regexp_replace(p.prosrc, '\s+', ' ', 'g') as src
    from pg_proc p where p.pronamespace = 'msgx'::regnamespace;

-- Tags and columns.
select is((select array_agg(e.tag || ' ' || e.tab || '.' || e.col) from pg_temp.expected e
          where not exists (select 1 from pg_temp.col c
          where c.tab = e.tab and c.col = e.col and c.type = format('character varying(%s)', e.width))), null,
          'every tag and attribute has its column, of its width');
select is((select array_agg(c.col order by c.col) from pg_temp.col c where c.tab = 'flight_schd'
          and not exists (select 1 from pg_temp.expected e where e.tab = c.tab and e.col = c.col)),
          array['created_at', 'fday', 'flid', 'high_message_id', 'last_dttm', 'last_message_id', 'state_version',
              'updated_at'], 'the other columns of flight_schd');
select is((select array_agg(c.col order by c.col) from pg_temp.col c where c.tab = t
          and not exists (select 1 from pg_temp.expected e
          where e.tab = c.tab and e.col = c.col) and c.col <> 'source_seq'),
          case t when 'flight_route_point' then array['created_at', 'flid', 'ordinal', 'record_version', 'route_kind',
              'updated_at'] else array['created_at', 'flid', 'ordinal', 'record_version', 'updated_at'] end,
              'the other columns of ' || t)
  from (select distinct f.target::text as t from flight_field f where f.kind = 'collection') x order by t;
select is((select count(distinct target) from flight_field where kind = 'collection'), 9::bigint, 'nine detail tables');
select is((select count(*) from flight_field where kind = 'collection'), 10::bigint, 'ten collections');
select is((select array_agg(lower(tag) order by lower(tag)) from flight_field where kind = 'scalar'),
          (select array_agg(t order by t)
              from unnest(string_to_array('alcd alsc flno mvin sodt std flty flin acft reno taop tafl taid trml maxp csop csft maid estt actt stnd abdg phag fhag mhag cncl remc exsc exsr ftss pedt padt neat naat runw eobt tobt cobt ctot iest vipp vipr lbno lbwt paxc egsr egst',
              ' ')) t), 'the scalars of the contract');
select is((select count(*) from flight_field where kind = 'scalar' and target <> lower(tag)), 0::bigint,
          'a scalar is the tag in lower case');
select is((select array_agg(tag || width order by tag) from flight_field where width <> 200),
          array['MAFL30000', 'REMC1000', 'SRVT30000', 'VIPF30000'], 'the widths that are not 200');
select is((select string_agg(tag || '=' || coalesce(seq_tag, '-'), ' ' order by tag) from flight_field
          where kind = 'collection'),
          'ABTM=ASNO CHDT=CHNO CHOT=CSNO CKDT=CKNO CLDT=CLNO DELY=- ERUT=RTNO GTDT=GTNO PSDT=PSNO ROUT=RTNO',
              'sequence attributes (FS-6.1)');
select is((select count(*) from flight_field where kind = 'collection' and match_tag is distinct
          from coalesce(seq_tag, 'CODE')), 0::bigint, 'Apply matches by sequence, DELY by CODE (D12)');
select is((select array_agg(c.tab || '.' || c.col) from pg_temp.col c
          where c.col = 'flid' and c.type <> 'character varying(20)'), null, 'FLID has 20 characters everywhere');
select is((select array_agg(c.tab) from pg_temp.col c
          where c.col = 'source_seq' and c.type <> 'character varying(200)'), null,
          'a sequence is text, may be missing');
select results_eq('select tag::text, kind::text, seq_tag::text, max_items, attrs from field_catalogue()',
          $$select tag::text, kind::text, seq_tag::text, max_items,
          coalesce(attrs, '{}') from flight_field order by tag$$, 'field_catalogue gives it to the driver');

-- The routine that writes names every column of every detail table, the one that projects reads it.
create temp view inserted as
    select m[1] as tab, trim(c) as col from pg_temp.src s cross
        join regexp_matches(s.src, 'insert into (flight_[a-z_]+) \(([^)]*)\)', 'g') m cross
        join unnest(string_to_array(m[2], ',')) c where s.name = '_write_flights';
select is((select array_agg(distinct i.col order by i.col) from pg_temp.inserted i where i.tab = t),
          (select array_agg(c.col order by c.col) from pg_temp.col c where c.tab = t),
          'every column of ' || t || ' is written')
  from (select distinct f.target::text as t from flight_field f where f.kind = 'collection') x order by t;
select is((select array_agg(e.col) from pg_temp.expected e cross join pg_temp.src s
          where e.tab = 'flight_schd' and s.name = '_write_flights' and s.src !~ ('\m' || e.col || ' += case when c\.vals \? ''' || e.tag || ''' then')),
          null, 'every column of flight_schd is written from its tag');
create temp view projected as
    select f.tag::text, m[1] as body from msgx.flight_field f join pg_temp.src s on s.name = 'flight_projection'
     cross join regexp_matches(s.src,
         '''' || f.tag || ''', \(select jsonb_agg\(jsonb_build_object\((.*?)\) order by d\.ordinal\) from ' || f.target || ' d where') m
         where f.kind = 'collection';
select is((select count(*) from pg_temp.projected), 10::bigint, 'ten collections are projected from their tables');
select is((select array_agg(e.tag || '.' || e.col) from pg_temp.expected e join pg_temp.projected p on p.tag = e.tag
          where p.body !~ ('\md\.' || e.col || '\M')), null, 'every column of every detail table is projected');
select is((select array_agg(e.col) from pg_temp.expected e cross join pg_temp.src s
          where e.tab = 'flight_schd' and s.name = 'flight_projection' and s.src !~ ('''' || case when e.col like 'f___\_%' then upper(substr(e.col,
          6)) else e.tag end || ''',[^,]*\mf\.' || e.col || '\M')), null,
          'every column of flight_schd is projected under its tag');

select * from finish();
rollback;
