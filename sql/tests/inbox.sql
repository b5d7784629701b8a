-- Reading a mailbox: start, holes, watermark, late rows, reused ids (US-01, D29, D38).
begin;
set local search_path = msgx, tap;
select plan(58);

create function pg_temp.t(p numeric) returns timestamptz language sql immutable as $$select timestamptz '2026-09-09 16:00:00+00' + make_interval(secs => p::double precision)$$;
create function pg_temp.scan(p_ids bigint[], p_at numeric, p_trx text[] default null, p_step integer default 1, p_after bigint default null) returns jsonb
    language sql as $$select scan_inbox('box', coalesce(p_after, (select watermark from inbox_cursor)), p_ids, p_ids[cardinality(p_ids)], p_trx, p_step, pg_temp.t(p_at))$$;
create function pg_temp.take(p_ids bigint[], p_upto bigint, p_after bigint default null) returns jsonb
    language sql as $$select enqueue_inbox('box', coalesce(p_after, (select watermark from inbox_cursor)), p_upto, p_ids,
        array(select ('m' || i)::bytea from unnest(p_ids) i), array_fill('text'::text, array[cardinality(p_ids)]),
        array_fill(timestamp '2026-09-10 00:00:00', array[cardinality(p_ids)]), pg_temp.t(5))$$;
create function pg_temp.gaps() returns table (first_id bigint, last_id bigint, age numeric, given_up boolean, filled boolean)
    language sql as $$select g.first_id, g.last_id, round(extract(epoch from g.seen_at - pg_temp.t(0)), 1), g.given_up_at is not null, g.filled_at is not null
        from inbox_gap g order by 1$$;

-- Start.
select throws_ok($$select pg_temp.scan('{1}', 0, null, 1, 0)$$, 'MX312', null, 'no cursor, no scan');
select throws_ok($$select pg_temp.take('{1}', 1, 0)$$, 'MX312', null, 'and nothing is taken');
select throws_ok($$select rescan_inbox('box', '{}', '{}', null, null)$$, 'MX312', null, 'nor looked at again');
select throws_ok($$select enqueue_late('box', '{}', '{}', '{}', '{}', null)$$, 'MX312', null, 'nor taken late');
select is(note_scan_failure('box', null), null, 'nothing to count');
select throws_ok($$select start_inbox('replay', 1, null)$$, 'MX001', null, 'replay is no mailbox');
select throws_ok($$select start_inbox('box', null, null)$$, 'MX001', null, 'the start must be said');
select enqueue_messages('replay', array[1], array['x'::bytea], array['text'], null, null);
select throws_ok($$select start_inbox('box', 1, null)$$, 'MX314', null, 'a schema of replay is refused');
delete from message_raw;
delete from proc_state;
select ok(start_inbox('box', 11, pg_temp.t(0)), 'first start');
select ok(not start_inbox('box', 1, null), 'a later start changes nothing');
select results_eq('select watermark, first_id from inbox_cursor', 'values (10::bigint, 11::bigint)', 'the watermark is before the first id');
select throws_ok($$select start_inbox('other', 1, null)$$, 'MX314', null, 'one mailbox to a schema');

-- Without holes.
select is(pg_temp.scan('{11, 12}', 0), '{"upto": 12, "holes": 0, "given_up": 0}'::jsonb, 'no hole');
select is(pg_temp.scan('{}', 0), '{"upto": 10, "holes": 0, "given_up": 0}'::jsonb, 'nothing new');
select throws_ok($$select pg_temp.scan('{11}', 0, null, 1, 9)$$, 'MX203', null, 'another poller moved the watermark');
select throws_ok($$select pg_temp.scan('{10}', 0)$$, 'MX001', null, 'ids above the watermark only');
select throws_ok($$select scan_inbox('box', 10, '{}', 9, null, 1, null)$$, 'MX311', null, 'highest id below the watermark');
select lives_ok($$select scan_inbox('box', 10, '{}', null, null, 1, null)$$, 'an empty mailbox was purged');
select is(pg_temp.take('{11, 12}', 12), '{"new": 2, "known": 0}'::jsonb, 'two rows are taken');
select results_eq('select message_id, mailbox_id, late, received_at from proc_state order by 1',
          $$values (11::bigint, 11::bigint, false, pg_temp.t(0)), (12, 12, false, pg_temp.t(0))$$, 'with their id and receive time');
select is((select watermark from inbox_cursor), 12::bigint, 'the watermark moved along');
select throws_ok($$select pg_temp.take('{13}', 13, 11)$$, 'MX203', null, 'compare and swap');
select throws_ok($$select pg_temp.take('{14}', 13)$$, 'MX001', null, 'an id outside the interval');
select is(note_scan_failure('box', null), 1, 'a failure is counted');
select is(note_scan_failure('box', null), 2, 'and the next');
select pg_temp.scan('{13}', 0);
select is((select failures from inbox_cursor), 0, 'a good scan sets it back');

-- Holes age from first sight, side by side; a range splits as rows come.
select is(pg_temp.scan('{13, 20, 22}', 0), '{"upto": 13, "holes": 2, "given_up": 0}'::jsonb, 'two holes, the first holds back');
select is(pg_temp.scan('{13, 16, 20, 22, 24}', 10), '{"upto": 13, "holes": 4, "given_up": 0}'::jsonb, 'one splits, one is new');
select results_eq('select * from pg_temp.gaps()', $$values (14::bigint, 15::bigint, 0.0, false, false), (17, 19, 0.0, false, false),
          (21, 21, 0.0, false, false), (23, 23, 10.0, false, false)$$, 'parts keep the age of the whole');
select is(pg_temp.scan('{13, 14, 15, 16, 20, 22, 24}', 20), '{"upto": 16, "holes": 3, "given_up": 0}'::jsonb, 'a filled one holds back no more');
select ok((select filled from pg_temp.gaps() where first_id = 14), 'and is booked as filled');
select is(pg_temp.take('{13, 14, 15, 16}', 16) ->> 'new', '4', 'taken in order');
select is(pg_temp.scan('{20, 22, 24}', 29.9), '{"upto": 16, "holes": 3, "given_up": 0}'::jsonb, 'still within the delay');
select is(pg_temp.scan('{20, 22, 24}', 30), '{"upto": 22, "holes": 1, "given_up": 2}'::jsonb, 'after it both of that age are given up');
select is(pg_temp.scan('{20, 22, 24}', 31), '{"upto": 22, "holes": 1, "given_up": 0}'::jsonb, 'once');
select is(pg_temp.scan('{20, 22, 24}', 5), '{"upto": 22, "holes": 1, "given_up": 0}'::jsonb, 'a clock that runs back');
select is((select age from pg_temp.gaps() where first_id = 23), 5.0, 'never makes a hole wait longer than the delay');
select is(pg_temp.take('{18, 20, 22}', 22) ->> 'new', '3', 'a given-up row that comes in time');
select ok((select filled from pg_temp.gaps() where first_id = 17), 'fills its hole');

-- Open transactions.
select is(pg_temp.scan('{24}', 6, '{a, b}') ->> 'upto', '22', 'seen a second later: what is open is noted');
select is(pg_temp.scan('{24}', 7, '{b, c}') ->> 'upto', '22', 'one of them is open still');
select is(pg_temp.scan('{24}', 8, null) ->> 'upto', '22', 'not known is not ended');
select is(pg_temp.scan('{24}', 9, '{c}'), '{"upto": 24, "holes": 0, "given_up": 1}'::jsonb, 'all have ended: it never comes');
select pg_temp.take('{24}', 24);
select is(pg_temp.scan('{26}', 20, '{}') ->> 'upto', '24', 'first sight, nothing open: a transaction may just be starting');
select is(pg_temp.scan('{26}', 20.9, '{}') ->> 'upto', '24', 'too soon to be listed');
select is(pg_temp.scan('{26}', 21, '{}') ->> 'upto', '26', 'a second later it would be');
select pg_temp.take('{26}', 26);

-- Stepped ids.
select is(pg_temp.scan('{28, 30, 34}', 30, null, 2), '{"upto": 30, "holes": 1, "given_up": 0}'::jsonb, 'only ids of the phase are missed');
select ok(exists (select 1 from pg_temp.gaps() where (first_id, last_id) = (32, 32)), 'and named');
select pg_temp.take('{28, 30}', 30);

-- Behind the watermark.
select is(rescan_inbox('box', '{10, 16, 17, 20, 25, 31}', array[null, '2026-09-10 00:00:00', null, null, null, null]::timestamp[], 26, pg_temp.t(40)), '{17, 25}'::bigint[],
          'rows that were never taken');
select is((select rescan_from from inbox_cursor), 26::bigint, 'progress is kept');
select throws_ok($$select rescan_inbox('box', '{16}', array[timestamp '2026-09-10 00:00:01'], null, null)$$, 'MX313', null, 'another receive time');
update delivery_target set floor_id = 26 where target = 'MAILBOX';
select is(enqueue_late('box', '{25}', array['late'::bytea], '{text}', '{null}', pg_temp.t(41)), '{"new": 1, "known": 0}'::jsonb, 'a late row is taken');
select is((select floor_id from delivery_target where target = 'MAILBOX'), 25::bigint, 'and found when it is to be marked');
select results_eq('select mailbox_id from proc_state where late', 'values (25::bigint)', 'and marked');
select ok((select filled and given_up from pg_temp.gaps() where first_id = 25), 'its hole says so');
select throws_ok($$select enqueue_late('box', '{31}', array['x'::bytea], '{text}', '{null}', null)$$, 'MX001', null, 'not above the watermark');
select throws_ok($$select enqueue_late('box', '{25}', array['other'::bytea], '{text}', '{null}', null)$$, 'MX313', null, 'other bytes under a known id');

-- Numbered anew: the offset keeps the queue's ids apart.
update inbox_cursor set id_offset = 30, watermark = 0, first_id = 1;
select pg_temp.take('{1}', 1);
select results_eq('select message_id, mailbox_id from proc_state order by 1 desc limit 1', 'values (31::bigint, 1::bigint)', 'id_offset is added');

select * from finish();
rollback;
