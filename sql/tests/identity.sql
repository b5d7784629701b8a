-- The business identity: key, duplicates, other content, day boundary (FS-4.1-5, D15, D16).
begin;
set local search_path = msgx, tap;
select plan(70);

select tap.start();
create function pg_temp.e(p_flid text, p_estt text, p_meta jsonb default '{}') returns jsonb
language sql immutable
as $$ select tap.with_meta(tap.flop('ESTT', tap.rec(p_flid, jsonb_build_object('ESTT', p_estt))), p_meta) $$;

-- The key.
select is(_identity_of('{"SNDR":"AODB","TYPE":"FLOP","STYP":"GTDT","SEQN":"42"}'), 'AODB|FLOP|GTDT|42',
          'sender, type, subtype, sequence');
select is(_identity_of('{"SNDR":"AODB","TYPE":"FLOP","STYP":"GTDT","SEQN":"000042"}'), 'AODB|FLOP|GTDT|42',
          'leading zeros do not count');
select is(_identity_of('{"SNDR":"AODB","TYPE":"FLOP","STYP":"GTDT","SEQN":"0"}'), 'AODB|FLOP|GTDT|0',
          'zero is a number');
select is(_identity_of('{"SNDR":"AODB","TYPE":"FLOP","STYP":"GTDT","SEQN":"999999999999999999"}'),
          'AODB|FLOP|GTDT|999999999999999999', '18 digits fit');
select is(_identity_of('{"SNDR":"A|B","TYPE":"FLOP","STYP":"GTDT","SEQN":"1"}'), 'A\|B|FLOP|GTDT|1',
          'the separator is escaped');
select is(_identity_of('{"SNDR":"A\\","TYPE":"B","STYP":"C","SEQN":"1"}'), 'A\\|B|C|1', 'the escape is escaped');
select isnt(_identity_of('{"SNDR":"A","TYPE":"B|C","STYP":"D","SEQN":"1"}'),
          _identity_of('{"SNDR":"A|B","TYPE":"C","STYP":"D","SEQN":"1"}'), 'a separator moves nothing');
select isnt(_identity_of('{"SNDR":"A\\","TYPE":"|B","STYP":"D","SEQN":"1"}'),
          _identity_of('{"SNDR":"A\\|","TYPE":"B","STYP":"D","SEQN":"1"}'), 'nor does an escape');
select is(_identity_of(m::jsonb), null, 'no identity: ' || m)
  from unnest(array['{}', 'null', '"x"', '[]', '{"TYPE":"B","STYP":"C","SEQN":"1"}',
      '{"SNDR":"","TYPE":"B","STYP":"C","SEQN":"1"}',
                    '{"SNDR":"A","TYPE":"B","STYP":"C"}', '{"SNDR":"A","TYPE":"B","STYP":"C","SEQN":"-1"}',
                        '{"SNDR":"A","TYPE":"B","STYP":"C","SEQN":" 1"}',
                    '{"SNDR":"A","TYPE":"B","STYP":"C","SEQN":"１"}', '{"SNDR":"A","TYPE":"B","STYP":"C","SEQN":"1\n"}',
                    '{"SNDR":"A","TYPE":"B","STYP":"C","SEQN":"1234567890123456789"}']) m;
select is(_identity_of('{"SNDR":"A","TYPE":"B","STYP":"C","SEQN":"1","DTTM":"20260909100200"}'), 'A|B|C|1',
          'the day is no part by default');
select tap.set('identity.include_day_boundary', 'yes');
select is(_identity_of('{"SNDR":"A","TYPE":"B","STYP":"C","SEQN":"1","DTTM":"20260909100200"}'), 'A|B|C|1|20260909',
          'D16: the local date of DTTM');
select is(_identity_of('{"SNDR":"A","TYPE":"B","STYP":"C","SEQN":"1"}'), 'A|B|C|1|', 'D16: no DTTM is no date');
select is(_identity_of('{"SNDR":"A","TYPE":"B","STYP":"C","SEQN":"1","DTTM":"20260909"}'), 'A|B|C|1|',
          'D16: an incomplete DTTM is no date');
select is(tap.outcome(pg_temp.e('D1', '1', '{"SEQN":"7","DTTM":"20260909100200"}')), 'SUCCEEDED', 'D16: one day');
select is(tap.outcome(pg_temp.e('D1', '2', '{"SEQN":"7","DTTM":"20260910000000"}')), 'SUCCEEDED',
          'D16: the same sequence the next day is another message');
select is(tap.outcome(pg_temp.e('D1', '2', '{"SEQN":"7","DTTM":"20260910235959"}')), 'SKIPPED',
          'D16: the same day it is a duplicate');
select tap.set('identity.include_day_boundary', 'no');

-- DTTM.
select is(_full_dttm('20260909100200'), '20260909100200', 'a full DTTM');
select is(_full_dttm(d), null, 'not a full DTTM: ' || d)
  from unnest(array['', '2026090910020', '202609091002000', '20261309100200', '20260009100200', '20260932100200',
      '20260900100200', '20260909240000', '20260909106000', '20260909100060', '2026-09-091002']) d;
select is(_full_dttm(null), null, 'no DTTM');

-- A duplicate.
select is(tap.send(pg_temp.e('F1', '1', '{"SEQN":"100"}')) ->> 'status', 'SUCCEEDED', 'the first');
select tap.last_id() as first_id \gset
select is(tap.send(pg_temp.e('F1', '1', '{"SEQN":"0100"}')),
          jsonb_build_object('message_id', :first_id + 1, 'status', 'SKIPPED', 'duplicate_of', :first_id, 'reason',
              format('duplicate: message %s holds the identity of message %s', :first_id, :first_id + 1)),
          'the same again is SKIPPED and names the holder');
select is(tap.version('F1'), 1::bigint, 'it does not touch the flight');
select is(tap.events(:first_id + 1), '{}'::text[], 'nor the outbox');
select results_eq(format('select status::text, duplicate_of, identity_key::text, error_class::text, backfill_status::text from proc_state where message_id = %s',
          :first_id + 1),
                  format($$values ('SKIPPED', %s::bigint, 'AODB|FLOP|ESTT|100', null::text, 'PENDING')$$, :first_id),
                      'the row says so; it is marked in the mailbox all the same');
select is((select message_id from message_identity where identity_key = 'AODB|FLOP|ESTT|100'), :first_id::bigint,
          'the first stays the holder');
select is(tap.outcome(pg_temp.e('F1', '2', '{"SEQN":"101"}')), 'SUCCEEDED', 'another sequence is another message');
select is(tap.outcome(pg_temp.e('F1', '2', '{"SEQN":"100","SNDR":"OTHER"}')), 'SUCCEEDED',
          'another sender is another message');
select is(tap.outcome(tap.with_meta(pg_temp.e('F1', '2', '{"SEQN":"100"}'),
          '{"STYP":"ACTT"}') #- '{flights,0,set,ESTT}' || '{"flights":[{"FLID":"F1","set":{"ACTT":"1"}}]}'),
          'SUCCEEDED', 'another kind is another message');

-- The same identity, other content (D15).
select is(tap.send(pg_temp.e('F1', '9', '{"SEQN":"100"}')) - 'message_id' - 'reason',
          jsonb_build_object('status', 'SKIPPED', 'duplicate_of', :first_id, 'result', '{"reused_run":1}'::jsonb),
          'skip: SKIPPED, counted');
select matches(tap.reason(), '^identity-reused: message [0-9]+ holds the identity of message [0-9]+$',
          'the reason is identity-reused');
select is(tap.flight('F1') ->> 'ESTT', '2', 'the flight stays');
select tap.set('identity.conflict', 'dead');
select is(tap.outcome(pg_temp.e('F1', '9', '{"SEQN":"100"}')), 'DEAD/MALFORMED', 'dead: DEAD');
select is((select duplicate_of from proc_state where message_id = tap.last_id()), :first_id::bigint,
          'dead: it names the holder too');
select is(tap.outcome(pg_temp.e('F1', '1', '{"SEQN":"100"}')), 'SKIPPED',
          'dead: the same content is a plain duplicate');
select tap.set('identity.conflict', 'accept_newer');
select is(tap.outcome(pg_temp.e('F1', '9', '{"SEQN":"100"}')), 'SKIPPED', 'accept_newer: the same DTTM is not newer');
select is(tap.outcome(pg_temp.e('F1', '9', '{"SEQN":"100","DTTM":"20260909075959"}')), 'SKIPPED',
          'accept_newer: an earlier DTTM is not newer');
select is(tap.outcome(pg_temp.e('F1', '9', '{"SEQN":"100","DTTM":""}')), 'SKIPPED',
          'accept_newer: no DTTM is not newer');
select is(tap.outcome(pg_temp.e('F1', '9', '{"SEQN":"100","DTTM":"20260909080001"}')), 'SUCCEEDED',
          'accept_newer: a later DTTM is processed');
select is(tap.flight('F1') ->> 'ESTT', '9', 'accept_newer: its content is applied');
select results_eq($$select message_id, dttm::text from message_identity where identity_key = 'AODB|FLOP|ESTT|100'$$,
          $$values (tap.last_id(), '20260909080001')$$, 'accept_newer: it is the holder now');
select is(tap.outcome(pg_temp.e('F1', '9', '{"SEQN":"100","DTTM":"20260909090000"}')), 'SKIPPED',
          'accept_newer: the same content later is a duplicate');
select matches(tap.reason(), '^duplicate: ', 'accept_newer: plainly');

-- A holder that has no DTTM.
select is(tap.outcome(pg_temp.e('F1', '1', '{"SEQN":"300","DTTM":"x"}')), 'SUCCEEDED', 'a message without a full DTTM');
select is(tap.outcome(pg_temp.e('F1', '2', '{"SEQN":"300"}')), 'SKIPPED',
          'accept_newer: newer than nothing is not proven');
select tap.set('identity.conflict', 'skip');

-- META is no part of the content.
select is(_content_hash('{"meta":{"a":1},"flights":[]}'), _content_hash('{"flights":[]}'), 'META does not count');
select is(_content_hash('{"error":{"a":1},"flights":[]}'), _content_hash('{"flights":[]}'),
          'nor does the error of decoding');
select isnt(_content_hash('{"flights":[{"FLID":"A"}]}'), _content_hash('{"flights":[]}'), 'records do');
select is(_content_hash('{"flights":[]}'), sha256('{"flights": []}'::bytea), 'SHA-256 of the canonical jsonb text');
select is(_content_hash(null), null, 'nothing has no hash');

select * from finish();
rollback;
