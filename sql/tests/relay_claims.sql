-- Claims, confirmations and failures of the relay (US-07, D6, D18, D39, contract 4).
begin;
set local search_path = msgx, tap;
select plan(63);

select tap.start();
create function pg_temp.t(p integer) returns timestamptz language sql immutable as $$select timestamptz '2026-09-09 10:00:00+00' + make_interval(secs => p)$$;
create function pg_temp.r(p text) returns uuid language sql immutable as $$select md5(p)::uuid$$;
create function pg_temp.claim(p_target text, p_token text, p_at integer, p_limit integer default 100)
    returns table (event_id bigint, kind text, flid text, version bigint) language sql
    as $$select c.event_id, c.kind::text, c.flid::text, c.state_version from claim_events(p_target, pg_temp.r(p_token), p_limit, 60, pg_temp.t(p_at)) c$$;

-- Arguments.
select throws_ok($$select * from claim_events('MAILBOX', pg_temp.r('a'), 10, 60, null)$$, 'MX001', null, 'no event goes to the mailbox');
select throws_ok($$select * from claim_events('KAFKA:msg', null, 10, 60, null)$$, 'MX001', null, 'a token is needed');
select throws_ok($$select * from claim_events('KAFKA:msg', pg_temp.r('a'), 0, 60, null)$$, 'MX001', null, 'a limit is needed');
select throws_ok($$select * from claim_events('KAFKA:msg', pg_temp.r('a'), 10, 4000, null)$$, 'MX001', null, 'a lease has an end');
select throws_ok($$select confirm_events('KAFKA:msg', pg_temp.r('a'), array['A'], array[1, 2]::bigint[], null)$$, 'MX001', null, 'pairs only');
select throws_ok($$select confirm_events('KAFKA:msg', pg_temp.r('a'), '{}', '{}', null)$$, 'MX503',
          'the lease of target KAFKA:msg went to another relay; nothing of this claim was recorded', 'who claimed nothing confirms nothing');

select throws_ok($$select confirm_events('MAILBOX', pg_temp.r('a'), '{}', '{}', null)$$, 'MX001', 'MAILBOX takes no events', 'the mailbox has marks of its own');

-- States: one row per flight for all its events.
select is_empty($$select * from pg_temp.claim('KAFKA:schd', 'a', 0)$$, 'nothing yet');
select tap.given(tap.dnld('09SEP26', tap.rec('B', '{"ESTT":"1"}'), tap.rec('A')),
          tap.flop('ESTT', tap.rec('B', '{"ESTT":"2"}')), tap.flop('ESTT', tap.rec('B', '{"ESTT":"3"}')));
select results_eq($$select * from pg_temp.claim('KAFKA:schd', 'a', 1)$$,
          $$values (2::bigint, 'STATE', 'A', 1::bigint), (6, 'STATE', 'B', 3)$$, 'each flight once, up to its newest event');
select is((select c.value from claim_events('KAFKA:schd', pg_temp.r('a'), 10, 60, pg_temp.t(2)) c where c.flid = 'B'), tap.flight('B'), 'with its projection');
select is((select array_agg(c.flid::text) from claim_events('KAFKA:schd', pg_temp.r('a'), 1, 60, pg_temp.t(2)) c), array['B'], 'a limit takes the oldest first');

-- The lease.
select throws_ok($$select * from pg_temp.claim('KAFKA:schd', 'b', 30)$$, 'MX503', null, 'another relay has to wait');
select throws_ok($$select confirm_events('KAFKA:schd', pg_temp.r('b'), array['A'], array[2]::bigint[], null)$$, 'MX503', null, 'and confirms nothing');
select throws_ok($$select fail_events('KAFKA:schd', pg_temp.r('b'), array[2]::bigint[], array['x'], null)$$, 'MX503', null, 'and fails nothing');
select throws_ok($$select block_target('KAFKA:schd', pg_temp.r('b'), 'x', null)$$, 'MX503', null, 'and blocks nothing');
select is(release_target('KAFKA:schd', pg_temp.r('b'), null), false, 'and releases nothing');
select is_empty($$select * from pg_temp.claim('KAFKA:msg', 'b', 30, 1) where kind <> 'NOTICE'$$, 'the other target is another lease');
select throws_ok($$select confirm_events('KAFKA:schd', pg_temp.r('a'), array['B'], array[1000000]::bigint[], null)$$, 'MX001', null, 'an id that is none is refused');
select throws_ok($$select confirm_events('KAFKA:schd', pg_temp.r('a'), array['A'], array[6]::bigint[], null)$$, 'MX001', null, 'and so is one of another flight');
select is(confirm_events('KAFKA:schd', pg_temp.r('a'), array['B'], array[6]::bigint[], pg_temp.t(40)), 3, 'confirmed: all events of the flight up to it');
select results_eq($$select event_id, sent_at from msg_event where flid = 'B' and kind = 'STATE' and status = 'SENT' order by 1$$,
          $$values (1::bigint, pg_temp.t(40)), (4, pg_temp.t(40)), (6, pg_temp.t(40))$$, 'they are SENT');
select is((select floor_id from delivery_target where target = 'KAFKA:schd'), 2::bigint, 'the floor stays below what is open');
select is((select count(*) from pg_temp.claim('KAFKA:schd', 'b', 70)), 1::bigint, 'after its end anybody may take the lease');
select throws_ok($$select confirm_events('KAFKA:schd', pg_temp.r('a'), array['A'], array[2]::bigint[], null)$$, 'MX503', null, 'the first relay is late');
select is((select status::text from msg_event where event_id = 2), 'PENDING', 'and changed nothing');
select is(release_target('KAFKA:schd', pg_temp.r('b'), pg_temp.t(71)), true, 'a lease is given back');
select is((select count(*) from pg_temp.claim('KAFKA:schd', 'a', 72)), 1::bigint, 'and taken at once');
select count(*) from claim_events('KAFKA:schd', pg_temp.r('b'), 100, 3600, pg_temp.t(5000)) \gset
select throws_ok($$select * from pg_temp.claim('KAFKA:schd', 'a', 4999)$$, 'MX503', null, 'a clock that went back a little steals no long lease');
select is((select count(*) from claim_events('KAFKA:schd', pg_temp.r('b'), 100, 60, pg_temp.t(5000))), 1::bigint, 'a lease takes the length of its last claim');
select throws_ok($$select * from pg_temp.claim('KAFKA:schd', 'a', 4941)$$, 'MX503', null, 'nor a short one');
select is((select count(*) from pg_temp.claim('KAFKA:schd', 'a', 4939)), 1::bigint, 'a clock that went back by more than a lease strands nothing');
select is(release_target('KAFKA:schd', pg_temp.r('a'), pg_temp.t(4939)), true, 'given back again');

-- A tombstone absorbs what came before it and holds back what comes after it.
select tap.given(tap.fdel('A'), tap.dnld('10SEP26', tap.rec('A', '{"ESTT":"9"}')));
select results_eq($$select kind, flid, version from pg_temp.claim('KAFKA:schd', 'a', 80)$$, $$values ('TOMBSTONE', 'A', 2::bigint)$$,
          'the tombstone first, in place of the state before it');
select is((select c.value from claim_events('KAFKA:schd', pg_temp.r('a'), 10, 60, pg_temp.t(80)) c), '{"DELETED": true, "FLID": "A"}'::jsonb, 'as an object');
select set_setting('kafka.tombstone', 'null', null);
select is((select c.value from claim_events('KAFKA:schd', pg_temp.r('a'), 10, 60, pg_temp.t(80)) c), null, 'or as null');
select is((select confirm_events('KAFKA:schd', pg_temp.r('a'), array_agg(c.flid), array_agg(c.event_id), pg_temp.t(81)) from pg_temp.claim('KAFKA:schd', 'a', 81) c),
          2, 'confirmed with what it absorbed');
select results_eq($$select kind, flid, version from pg_temp.claim('KAFKA:schd', 'a', 82)$$, $$values ('STATE', 'A', 3::bigint)$$, 'then the state after it');

-- Notices: by event id; one that waits holds back the rest.
select results_eq($$select event_id, kind, flid from pg_temp.claim('KAFKA:msg', 'b', 83)$$,
          $$select e.event_id, e.kind::text, e.flid::text from msg_event e where e.kind = 'NOTICE' order by e.event_id$$, 'all notices in order');
select is(fail_events('KAFKA:msg', pg_temp.r('b'), array[3]::bigint[], array[e'too\nlarge'], pg_temp.t(83)), '{"failed": 1, "dead": 0}'::jsonb, 'the first one fails');
select is((select last_error::text from msg_event where event_id = 3), 'too large', 'its error is one line');
select is_empty($$select * from pg_temp.claim('KAFKA:msg', 'b', 83)$$, 'nobody overtakes it');
select is((select min(event_id) from pg_temp.claim('KAFKA:msg', 'b', 84)), 3::bigint, 'after its backoff it is due');
select is(confirm_events('KAFKA:msg', pg_temp.r('b'), array['B'], array[5]::bigint[], pg_temp.t(84)), 1, 'exactly the named notice is confirmed');
select is((select status::text from msg_event where event_id = 3), 'PENDING', 'not one before it');
select count(fail_events('KAFKA:msg', pg_temp.r('b'), array[3]::bigint[], array['x'], pg_temp.t(85))) from generate_series(1, 7) \gset
select is((select status::text from msg_event where event_id = 3), 'DEAD', 'exhausted: DEAD, visible');
select isnt_empty($$select * from pg_temp.claim('KAFKA:msg', 'b', 85)$$, 'and skipped');

-- States and tombstones that fail.
select is((select fail_events('KAFKA:schd', pg_temp.r('a'), array_agg(c.event_id), array_agg('x'::text), pg_temp.t(86)) from pg_temp.claim('KAFKA:schd', 'a', 86) c),
          '{"failed": 1, "dead": 0}'::jsonb, 'a state fails');
select is_empty($$select * from pg_temp.claim('KAFKA:schd', 'a', 86)$$, 'and waits');
update msg_event set status = 'DEAD' where status = 'PENDING' and kind = 'STATE';
select tap.given(tap.fdel('A'));
select count(fail_events('KAFKA:schd', pg_temp.r('a'), (select array_agg(event_id) from msg_event where status = 'PENDING' and kind = 'TOMBSTONE'), array['x'], pg_temp.t(87)))
  from generate_series(1, 20) \gset
select is((select c.kind from pg_temp.claim('KAFKA:schd', 'a', 1000) c), 'TOMBSTONE', 'a tombstone never ends DEAD');
select is((select confirm_events('KAFKA:schd', pg_temp.r('a'), array_agg(c.flid), array_agg(c.event_id), pg_temp.t(1001)) from pg_temp.claim('KAFKA:schd', 'a', 1001) c),
          2, 'what is confirmed later closes the DEAD state before it');
select is((select count(*) from msg_event where target = 'KAFKA:schd' and status <> 'SENT'), 0::bigint, 'nothing is left');

-- A refused tombstone of a flight that came back: what it absorbs and what follows it wait with it, and nothing of it dies.
select tap.given(tap.dnld('11SEP26', tap.rec('R', '{"ESTT":"1"}')), tap.fdel('R'), tap.dnld('12SEP26', tap.rec('R', '{"ESTT":"2"}')));
select count(fail_events('KAFKA:schd', pg_temp.r('a'), (select array_agg(event_id) from msg_event where status = 'PENDING' and kind = 'TOMBSTONE'), array['x'], pg_temp.t(2000)))
  from generate_series(1, 20) \gset
select results_eq($$select kind::text, status::text, attempts from msg_event where flid = 'R' and target = 'KAFKA:schd' order by event_id$$,
          $$values ('STATE', 'PENDING', 20), ('TOMBSTONE', 'PENDING', 20), ('STATE', 'PENDING', 0)$$, 'what a tombstone absorbs does not end DEAD');
select is_empty($$select * from pg_temp.claim('KAFKA:schd', 'a', 2059) where flid = 'R'$$, 'the flight waits for the backoff of its tombstone');
select results_eq($$select kind from pg_temp.claim('KAFKA:schd', 'a', 2060) where flid = 'R'$$, $$values ('TOMBSTONE')$$, 'and goes on with it');
select is((select confirm_events('KAFKA:schd', pg_temp.r('a'), array_agg(c.flid), array_agg(c.event_id), pg_temp.t(2061)) from pg_temp.claim('KAFKA:schd', 'a', 2061) c), 2, 'both are closed');
select is((select confirm_events('KAFKA:schd', pg_temp.r('a'), array_agg(c.flid), array_agg(c.event_id), pg_temp.t(2062)) from pg_temp.claim('KAFKA:schd', 'a', 2062) c), 1, 'then the state');

-- States of flights that are not there fill no claim.
select tap.given(tap.dnld('13SEP26', tap.rec('O1'), tap.rec('O2'), tap.rec('O3'), tap.rec('O4'), tap.rec('O5'), tap.rec('O6')), tap.dnld('14SEP26', tap.rec('Z')));
delete from flight_schd where flid like 'O%';
select results_eq($$select flid from pg_temp.claim('KAFKA:schd', 'a', 2063, 1)$$, $$values ('Z')$$, 'what can be sent is found behind them');
select is((select detail from health where "check" = 'states'), '6 pending states of flights that are not there, see consistency_check', 'health tells');
select is((select acknowledge_state_loss('op', 'restored without them', null) -> 'states'), '6'::jsonb, 'an operator accepts the loss');
select results_eq($$select status::text, count(*) from msg_event where flid like 'O%' group by 1$$, $$values ('DEAD', 6::bigint)$$, 'they are closed, visibly');
select is((select status from health where "check" = 'states'), 'ok', 'and health is content');

-- An outbox emptied by hand gives no id below the floor.
select is((select confirm_events('KAFKA:schd', pg_temp.r('a'), array_agg(c.flid), array_agg(c.event_id), pg_temp.t(2064)) from pg_temp.claim('KAFKA:schd', 'a', 2064) c), 1, 'all is sent');
delete from msg_event;
select tap.given(tap.dnld('15SEP26', tap.rec('Y')));
select results_eq($$select flid from pg_temp.claim('KAFKA:schd', 'a', 2065)$$, $$values ('Y')$$, 'a new event is found');

select * from finish();
rollback;
