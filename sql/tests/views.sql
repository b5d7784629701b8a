-- What operators see; every view can be read (contract 3).
begin;
set local search_path = msgx, tap;
select plan(33);

select tap.start();
select is((select count(*) from queue_status), 0::bigint, 'queue_status of an empty schema');
select is((select count(*) from queue_head), 0::bigint, 'queue_head of an empty schema');
select is((select count(*) from consistency_check), 0::bigint, 'consistency_check of an empty schema');
select lives_ok(format('select * from %I', c.relname), c.relname || ' can be read') from pg_class c
          where c.relnamespace = 'msgx'::regnamespace and c.relkind = 'v' order by c.relname;

select tap.given(tap.dnld('09SEP26', tap.rec('A',
          '{"ALCD":"ZZ","FLNO":"ZZ1","MVIN":"D","STD":"s","SODT":"o","ESTT":"e","ACTT":"a","STND":"1","REMC":"r","MAID":"M","CNCL":"Y"}',
    '{"GTDT":[{"GATE":"G1"},{"GATE":"G2"},{"GATE":"G3"}],"CKDT":[{"CHKC":"C1"},{"CHKC":"C2"}],"CLDT":[{"BELT":"B1"}],"DELY":[{"CODE":"RA","DURA":"10"},{"CODE":"WX"}]}'),
        tap.rec('B')), tap.plan_of('10SEP26', 'C'));

-- The board.
select is((select to_jsonb(d) - 'updated_at' from flight_schd_display d where flid = 'A'),
          '{"flid":"A","alcd":"ZZ","flno":"ZZ1","mvin":"D","maid":"M","fday":"2026-09-09","std":"s","sodt":"o","estt":"e","actt":"a","stnd":"1","gate1":"G1","gate2":"G2","gates":3,"counter1":"C1","counter2":"C2","counters":2,
            "belt1":"B1","belts":1,"delay_code1":"RA","delay_dura1":"10","delays":2,"cncl":"Y","remc":"r","state_version":1,"last_message_id":1}'::jsonb, 'the board: first two gates, counters, first belt, delay, counts');
select is((select jsonb_strip_nulls(to_jsonb(d)) - 'updated_at' from flight_schd_display d where flid = 'B'),
          '{"flid":"B","fday":"2026-09-09","gates":0,"counters":0,"belts":0,"delays":0,"state_version":1,"last_message_id":1}'::jsonb,
          'the board: a bare flight');
update flight_schd set alcd = '', flno = '', mvin = '', maid = '', std = '', sodt = '', estt = '', actt = '', stnd = '',
    cncl = '', remc = '' where flid = 'A';
update flight_gate set gate = ''; update flight_checkin set chkc = ''; update flight_belt set belt = ''; update flight_delay set code = '',
    dura = '';
select is((select jsonb_strip_nulls(to_jsonb(d)) - 'updated_at' from flight_schd_display d where flid = 'A'),
          '{"flid":"A","fday":"2026-09-09","gates":3,"counters":2,"belts":1,"delays":2,"state_version":1,"last_message_id":1}'::jsonb,
          'the board: empty text is absent (D11)');
select is((select count(*) from flight_schd_display), 3::bigint, 'the board: one row per flight');

-- The queue.
select tap.queue(11, 13);
select is(record_failure(11, tap.meta('FLOP', 'X') || '{"SEQN":"5"}', null, null, 'INFRA', 'why',
          tap.now_of(11)) ->> 'status', 'FAILED', 'a failed head');
select results_eq('select status::text, messages, first_id, last_id, oldest_enqueued_at from queue_status order by status',
          $$values ('FAILED', 1::bigint, 11::bigint, 11::bigint, tap.now_of(11)),
          ('PENDING', 2, 12, 13, tap.now_of(12)), ('SUCCEEDED', 2, 1, 2,
          tap.now_of(1))$$, 'queue_status counts by status');
select is((select to_jsonb(h) - 'received_at' - 'enqueued_at' - 'next_attempt_at' from queue_head h),
          '{"message_id":11,"status":"FAILED","sndr":"AODB","type":"FLOP","styp":"X","seqn":"5","attempts":1,"error_class":"INFRA","reason":"why","waiting":3}'::jsonb,
          'queue_head shows what everything waits for');
select is(record_failure(11, null, null, null, 'MALFORMED', 'bad', tap.now_of(11)) ->> 'status', 'DEAD', 'it dies');
select is((select to_jsonb(d) - 'received_at' - 'processed_at' from dead_letter d),
          '{"message_id":11,"sndr":"AODB","type":"FLOP","styp":"X","seqn":"5","dttm":"20260909080000","error_class":"MALFORMED","last_error_class":"MALFORMED","attempts":2,"reason":"bad","encoding":"text","bytes":7}'::jsonb,
          'dead_letter shows class, reason and size');
delete from message_raw where message_id = 11;
select is((select bytes from dead_letter), null, 'dead_letter: also without the original');

-- Backfill.
select is((select array_agg(message_id || ' ' || status || ' ' || backfill_status order by message_id)
          from backfill_todo), array['1 SUCCEEDED PENDING', '2 SUCCEEDED PENDING', '11 DEAD PENDING'],
          'backfill_todo shows every terminal message');
update proc_state set backfill_status = 'CLAIMED' where message_id = 1;
update proc_state set backfill_status = 'DONE' where message_id = 2;
select is((select array_agg(message_id order by message_id) from backfill_todo), array[1, 11]::bigint[],
          'backfill_todo: claimed ones are open, done ones are not');

-- Plans.
select results_eq('select fday, version, last_message_id, recs, members, owned_flights from snapshot_ledger order by fday',
          $$values (date '2026-09-09', 1::bigint, 1::bigint, 2, 2::bigint, 2::bigint), ('2026-09-10', 1, 2, 1, 1, 1)$$,
          'snapshot_ledger: version, members, flights');

-- Counts.
select is(tap.attempt(12, '{"meta":{"TYPE":"LDM","STYP":"X"}}') ->> 'status', 'SKIPPED', 'an ignored one');
select is(tap.attempt(13, tap.with_meta(tap.plan_of('10SEP26', 'C'), '{"SEQN":"2"}')) ->> 'status', 'SKIPPED',
          'a duplicate');
select results_eq('select rule, messages, last_id from ignored_count', $$values ('LDM-*', 1::bigint, 12::bigint)$$,
          'ignored_count');
select results_eq('select kind, sndr::text, type::text, styp::text, messages, last_id from duplicate_count',
          $$values ('duplicate', 'AODB', 'SCHD', 'DNLD', 1::bigint, 13::bigint)$$, 'duplicate_count');

-- Every anomaly.
select is((select count(*) from consistency_check), 0::bigint, 'consistency_check is empty when all is well');
insert into schd_gen_flid values ('2026-09-10', 'LOST'), ('2026-09-30', 'C');
insert into flight_gate (flid, ordinal, record_version, created_at, updated_at) values ('ORPHAN', 1, 1, now(), now());
insert into flight_route_point (flid, route_kind, ordinal, record_version, created_at, updated_at) values ('ORPHAN',
    'ROUT', 1, 1, now(), now());
-- B is listed: the plan that deleted its main may have kept it (D23). ALONE is on no list.
update flight_schd set maid = 'GONE' where flid = 'B';
insert into flight_schd (flid, maid, state_version, last_message_id, high_message_id, created_at, updated_at)
values ('ALONE', 'GONE', 1, 1, 1, now(), now());
insert into proc_state (message_id, source, received_at, raw_hash, enqueued_at) values (50, 'x', now(), 'x', now());
delete from pipeline_lock;
insert into flight_tombstone values ('GONE', 5, now(), 2);
insert into msg_event (event_id, target, kind, flid, state_version, message_id, created_at) values (900, 'KAFKA:schd',
    'STATE', 'NOFLIGHT', 1, 1, now()), (901, 'KAFKA:schd', 'STATE', 'WASHERE', 1, 1, now()),
    (902, 'KAFKA:schd', 'TOMBSTONE', 'WASHERE', 2, 1, now());
update proc_state set backfill_status = 'NONE' where message_id = 2;
select results_eq('select anomaly, subject from consistency_check order by anomaly collate "C", subject collate "C"',
                  $$values ('list-without-plan', '2026-09-30'), ('lost-member', 'LOST'), ('no-original', '50'),
                      ('no-writer-row', 'pipeline_lock'), ('orphan-detail', 'ORPHAN'),
                      ('orphan-detail', 'ORPHAN'), ('shared-without-main', 'ALONE'), ('state-without-flight', 'NOFLIGHT'),
                      ('terminal-without-backfill', '2')$$, 'consistency_check: a row per anomaly');

select * from finish();
rollback;
