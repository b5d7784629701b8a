-- What a SQLSTATE means: the longest prefix decides (D14).
begin;
set local search_path = msgx, tap;
select plan(50);

create function pg_temp.class_of(p_sqlstate text) returns text
language sql stable
as $$
    select e.error_class || ' ' || e.treatment from msgx.error_class e where p_sqlstate like e.sqlstate_prefix || '%'
        order by length(e.sqlstate_prefix) desc limit 1
$$;
select is(pg_temp.class_of(s), e, format('%s is %s', s, e))
  from (values ('08000', 'INFRA wait'), ('08006', 'INFRA wait'), ('40001', 'INFRA wait'), ('40P01', 'INFRA wait'),
      ('53100', 'INFRA wait'), ('53200', 'INFRA wait'), ('53300', 'INFRA wait'),
               ('55P03', 'INFRA wait'), ('55006', 'INFRA retry'), ('55000', 'INFRA retry'), ('57014', 'INFRA wait'),
                   ('57P01', 'INFRA wait'), ('57P03', 'INFRA wait'), ('58030', 'INFRA wait'), ('58P01', 'INFRA wait'),
               ('22001', 'MALFORMED dead'), ('54000', 'MALFORMED dead'), ('54001', 'MALFORMED dead'),
                   ('54023', 'MALFORMED dead'), ('22P02', 'MALFORMED dead'), ('22P05', 'MALFORMED dead'),
                   ('22003', 'MALFORMED dead'),
               ('22021', 'INFRA retry'), ('22012', 'INFRA retry'), ('23505', 'INFRA retry'), ('42P01', 'INFRA retry'),
                   ('XX000', 'INFRA retry'), ('P0001', 'INFRA retry'), ('25006', 'INFRA retry'), ('', 'INFRA retry'),
               ('MX001', 'INFRA stop'), ('MX002', 'INFRA stop'), ('MX003', 'INFRA stop'), ('MX101', 'MALFORMED dead'),
                   ('MX102', 'MALFORMED dead'), ('MX103', 'UNSUPPORTED retry'), ('MX104', 'UNSUPPORTED dead'),
               ('MX201', 'INFRA wait'), ('MX202', 'INFRA wait'), ('MX301', 'INFRA stop'), ('MX401', 'INFRA stop'),
                   ('MX402', 'INFRA stop'), ('MX501', 'INFRA wait'), ('MX901', 'INFRA stop'),
                   ('MX902', 'INFRA stop')) v (s, e);

-- The one place that raises.
select throws_ok($$select _raise('MX101', 'text', '{"a":1}')$$, 'MX101', 'text', 'the SQLSTATE and the text as given');
create function pg_temp.diagnose(p_sql text, out state text, out message text, out detail text,
    out hint text) language plpgsql as $$
begin
    execute p_sql;
exception when others then
    get stacked diagnostics state = returned_sqlstate, message = message_text, detail = pg_exception_detail,
        hint = pg_exception_hint;
end;
$$;
select results_eq($$select * from pg_temp.diagnose('select _raise(''MX999'', repeat(''x'', 5000), null)')$$,
          $$values ('MX999', repeat('x', 4000), '{}', 'docs/reference/errors.md#mx999')$$,
          'detail is JSON, the hint is the anchor of the runbook, the text is cut');
select results_eq($$select * from pg_temp.diagnose('select _refuse(''MX101'', 7, ''F'', ''GTDT'', ''rule'')')$$,
          $$values ('MX101', 'message 7, flight F, tag GTDT: rule', '{"tag": "GTDT", "flid": "F", "message_id": 7}',
          'docs/reference/errors.md#mx101')$$, 'a refusal names message, flight, tag, rule');
select results_eq($$select message, detail
          from pg_temp.diagnose('select _refuse(''MX101'', 7, null, null, ''rule'')')$$, $$values ('message 7: rule',
          '{"message_id": 7}')$$, 'what is not known is left out');
select results_eq($$select message from pg_temp.diagnose(format('select _refuse(''MX101'', 7, %L, %L, ''rule'')',
          repeat('f', 99), repeat('t', 99)))$$, $$values ('message 7, flight ' || repeat('f',
          20) || ', tag ' || repeat('t', 60) || ': rule')$$, 'flight and tag are cut');

select * from finish();
rollback;
