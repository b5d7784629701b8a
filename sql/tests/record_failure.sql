-- Classes, attempts, backoff, exhaustion and the stop of the pump (US-03/4, US-03/5, D14).
begin;
set local search_path = msgx, tap;
select plan(69);

select tap.start();
select tap.queue(1, 3);
create temp table r (step text primary key, j jsonb);

-- INFRA: 1 s doubled up to 60 s, eight attempts.
insert into r select 'a' || g, record_failure(1, tap.meta('FLOP', 'ESTT') || '{"SEQN":"1"}', '{"flights":[]}', 'XX000',
    null, 'message 1: broken', tap.now_of(1)) from generate_series(1, 8) g;
select is((select j from r where step = 'a1'),
          jsonb_build_object('message_id', 1, 'status', 'FAILED', 'error_class', 'INFRA', 'reason', 'message 1: broken',
              'attempts', 1, 'charged', true,
                             'next_attempt_at', tap.now_of(1) + interval '1 second', 'action', 'retry'),
                                 'the first failure waits one second');
select is((select (j ->> 'next_attempt_at')::timestamptz from r where step = 'a2'),
          tap.now_of(1) + interval '2 seconds', 'the second two');
select is((select (j ->> 'next_attempt_at')::timestamptz from r where step = 'a3'),
          tap.now_of(1) + interval '4 seconds', 'the third four');
select is((select (j ->> 'next_attempt_at')::timestamptz from r where step = 'a6'),
          tap.now_of(1) + interval '32 seconds', 'the sixth 32');
select is((select (j ->> 'next_attempt_at')::timestamptz from r where step = 'a7'),
          tap.now_of(1) + interval '60 seconds', 'the seventh 60: the cap');
select is((select j ->> 'status' from r where step = 'a7'), 'FAILED', 'seven attempts are not enough');
select is((select j from r where step = 'a8'),
          '{"message_id": 1, "status": "DEAD", "error_class": "EXHAUSTED", "last_error_class": "INFRA", "reason": "message 1: broken", "result": {"sqlstate": "XX000"}, "attempts": 8, "action": "next"}'::jsonb,
          'the eighth exhausts it');
select results_eq($$select status::text, error_class::text, last_error_class::text, attempts, reason::text,
          processed_at, next_attempt_at, backfill_status::text from proc_state where message_id = 1$$,
                  $$values ('DEAD', 'EXHAUSTED', 'INFRA', 8, 'message 1: broken', tap.now_of(1), null::timestamptz,
                      'PENDING')$$, 'DEAD, with the last class, attempts, reason and backfill intent');

-- The next head exhausted by the same SQLSTATE stops the pump.
insert into r select 'b' || g, record_failure(2, null, null, 'XX000', null, 'y', tap.now_of(2)) from generate_series(1,
    8) g;
select is((select j ->> 'action' from r where step = 'b7'), 'retry', 'before that it is retried');
select is((select j ->> 'status' from r where step = 'b8'), 'DEAD', 'a second head is exhausted');
select is((select j ->> 'action' from r where step = 'b8'), 'stop', 'by the same SQLSTATE: the pump stops');
insert into r select 'c' || g, record_failure(3, null, null, 'XX001', null, 'y', tap.now_of(3)) from generate_series(1,
    8) g;
select is((select j ->> 'action' from r where step = 'c8'), 'next', 'another SQLSTATE does not');
select tap.queue(4, 8);
select is(record_failure(4, null, null, null, 'MALFORMED', 'y', null) ->> 'status', 'DEAD', 'a message between');
insert into r select 'd' || g, record_failure(5, null, null, 'XX001', null, 'y', tap.now_of(5)) from generate_series(1,
    8) g;
select is((select j ->> 'action' from r where step = 'd8'), 'next', 'two that are not in a row do not');
insert into r select 'e' || g, record_failure(6, null, null, null, 'INFRA', 'y', tap.now_of(6)) from generate_series(1,
    8) g;
insert into r select 'f' || g, record_failure(7, null, null, null, 'INFRA', 'y', tap.now_of(7)) from generate_series(1,
    8) g;
select is((select j ->> 'action' from r where step = 'f8'), 'next', 'two without a SQLSTATE do not');
select is((select array_agg(distinct j ->> 'status') from r where step like 'f%'), array['DEAD', 'FAILED'],
          'they are exhausted all the same');

-- CODEC_ERROR and UNSUPPORTED.
insert into r select 'g' || g, record_failure(8, null, null, null, 'CODEC_ERROR', 'y', tap.now_of(8))
    from generate_series(1, 8) g;
select is((select array_agg(j ->> 'status' order by step) from r where step like 'g%'),
          array_fill('FAILED'::text, array[7]) || 'DEAD'::text, 'CODEC_ERROR has eight attempts');
select is((select j ->> 'last_error_class' from r where step = 'g8'), 'CODEC_ERROR', 'and its class is kept');
select tap.queue(9, 14);
insert into r select 'h' || g, record_failure(9, null, null, null, 'UNSUPPORTED', 'y', tap.now_of(9))
    from generate_series(1, 3) g;
select is((select array_agg(j ->> 'status' order by step) from r where step like 'h%'),
          array['FAILED', 'FAILED', 'DEAD'], 'UNSUPPORTED has three');
select is((select (error_class, last_error_class)::text from proc_state where message_id = 9),
          '(EXHAUSTED,UNSUPPORTED)', 'UNSUPPORTED is kept as last class');

-- The settings decide.
select tap.set('pipeline.max_attempts', '2');
select tap.set('pipeline.unsupported_attempts', '1');
select tap.set('pipeline.backoff_base', '10');
select tap.set('pipeline.backoff_cap', '15');
select is((record_failure(10, null, null, null, 'INFRA', 'y', tap.now_of(10)) ->> 'next_attempt_at')::timestamptz,
          tap.now_of(10) + interval '10 seconds', 'pipeline.backoff_base');
select is(record_failure(10, null, null, null, 'INFRA', 'y', tap.now_of(10)) ->> 'status', 'DEAD',
          'pipeline.max_attempts');
select is(record_failure(11, null, null, null, 'UNSUPPORTED', 'y', tap.now_of(10)) ->> 'status', 'DEAD',
          'pipeline.unsupported_attempts');
select tap.set('pipeline.max_attempts', '99');
select is((select max((record_failure(12, null, null, null, 'INFRA', 'y',
          tap.now_of(10)) ->> 'next_attempt_at')::timestamptz) from generate_series(1, 98)),
          tap.now_of(10) + interval '15 seconds', 'pipeline.backoff_cap, also after 98 attempts');
select is((select attempts from proc_state where message_id = 12), 98, 'every attempt counts');

-- Waiting charges nothing.
select is(record_failure(12, null, null, s, null, 'y', tap.now_of(10)) -> 'attempts', '98'::jsonb,
          s || ' charges no attempt')
  from unnest(array['08006', '40001', '40P01', '53100', '53300', '55P03', '57014', '57P01', '58030', 'MX201', 'MX202',
      'MX501']) s;
select is(record_failure(12, null, null, '40001', null, 'y', tap.now_of(10)) ->> 'charged', 'false', 'it says so');
select is(record_failure(12, null, null, '40001', null, 'y', tap.now_of(10)) ->> 'status', 'FAILED', 'the head waits');
select tap.set('pipeline.max_attempts', '2');
select is(record_failure(12, null, null, '40001', null, 'y', tap.now_of(10)) ->> 'status', 'FAILED',
          'also beyond a limit that was lowered');
select tap.set('pipeline.max_attempts', '99');
select is(record_failure(12, null, null, 'XX000', null, 'y', tap.now_of(10)) ->> 'status', 'DEAD',
          'a charged one ends it');
select is((record_failure(13, null, null, '40001', null, 'y', tap.now_of(10)) ->> 'next_attempt_at')::timestamptz,
          tap.now_of(10) + interval '10 seconds', 'waiting without attempts waits the base');

-- Dead at once.
select is(record_failure(13, null, null, '22001', null, 'y', tap.now_of(10)) - 'reason' - 'result' - 'message_id',
          '{"status": "DEAD", "error_class": "MALFORMED", "attempts": 1, "action": "next"}'::jsonb,
              'capacity is DEAD at once');
select is((select last_error_class::text from proc_state where message_id = 13), 'MALFORMED',
          'with MALFORMED as last class');
select is(record_failure(14, null, null, null, 'MALFORMED', 'y', tap.now_of(10)) ->> 'status', 'DEAD',
          'MALFORMED is DEAD at once');

-- What the caller may not ask for.
select tap.queue(15, 17);
select is(tap.state_of(format('select record_failure(15, null, null, %L, null, %L, null)', s, 'y')), 'MX001',
          s || ' is not recorded: the pump stops')
  from unnest(array['MX001', 'MX301', 'MX401', 'MX901']) s;
select throws_ok($$select record_failure(15, null, null, null, 'EXHAUSTED', 'y', null)$$, 'MX001', null,
          'EXHAUSTED is not a class to ask for');
select throws_ok($$select record_failure(15, null, null, null, 'x', 'y', null)$$, 'MX001', null,
          'nor is an unknown class');
select throws_ok($$select record_failure(99, null, null, null, 'INFRA', 'y', null)$$, 'MX002', null,
          'nor an unknown message');
select throws_ok($$select record_failure(16, null, null, null, 'INFRA', 'y', null)$$, 'MX501', null,
          'nor one that is not the head');
select is((select attempts from proc_state where message_id = 15), 0, 'none of them charged an attempt');

-- Odd text.
select is(record_failure(15, null, null, null, 'INFRA', e'a\u0001b\tc\nd\u001fe', null) ->> 'reason', e'ab\tc\nde',
          'control characters are cleaned away');
select is(length(record_failure(15, null, null, null, 'INFRA', repeat('ü', 5000), null) ->> 'reason'), 4000,
          'the reason is capped');
select is(length(tap.reason(15)), 4000, 'in the row too');
select is(record_failure(15, null, null, null, 'INFRA', null, null) ->> 'reason', 'no reason given', 'no reason');
select is(record_failure(15, null, null, null, 'INFRA', '', null) ->> 'reason', 'no reason given', 'an empty reason');
select is(record_failure(15, '"x"', null, null, 'INFRA', 'y', null) ->> 'status', 'FAILED', 'META that is a text');
select is(record_failure(15, '[1]', null, null, 'INFRA', 'y', null) ->> 'status', 'FAILED', 'META that is an array');
select is(record_failure(15, 'null', 'null', null, 'INFRA', 'y', null) ->> 'status', 'FAILED',
          'META and payload that are JSON null');
select is(record_failure(15, tap.meta('A', 'B') || '{"SEQN":"1"}', 'null', null, 'INFRA', 'y', null) ->> 'status',
          'FAILED', 'a payload that is JSON null');
select is(record_failure(15, tap.meta('A', 'B') || '{"SEQN":"1"}', '"x"', null, 'INFRA', 'y', null) ->> 'status',
          'FAILED', 'a payload that is a text');
select is(record_failure(15, tap.meta('A', 'B') || '{"SEQN":"1"}', '[]', null, 'INFRA', 'y', null) ->> 'status',
          'FAILED', 'a payload that is an array');
select is(record_failure(15, jsonb_build_object('SNDR', repeat('s', 999), 'TYPE', repeat('t', 999), 'STYP',
          '{"a":1}'::jsonb, 'SEQN', '[1]'::jsonb, 'DTTM', repeat('9', 999)), '{}', repeat('X', 99), null, 'y',
          null) ->> 'status',
          'FAILED', 'META of odd values');
select is((select length(sndr) from proc_state where message_id = 15), 200, 'META is cut to its columns');
select is(record_failure(15, null, null, '%_%', null, 'y', null) ->> 'error_class', 'INFRA',
          'a SQLSTATE that is none is INFRA');
select is((select sndr::text from proc_state where message_id = 15), repeat('s', 200),
          'no META keeps the META known before');

select * from finish();
rollback;
