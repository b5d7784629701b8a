-- Ignored kinds: any case, before identity, without effect (US-04, D36).
begin;
set local search_path = msgx, tap;
select plan(32);

select tap.start();
select is(_match_ignore(t, s), r, format('%s/%s', t, s))
  from (values ('LDM', 'X', 'LDM-*'), ('REGN', 'ADD', 'REGN-*'), ('RSTA', 'NONE', 'RSTA-*'), ('EROR', 'A', 'EROR-*'),
               ('FLOP', 'BOTM', 'FLOP-BOTM'), ('FLOP', 'LACL', 'FLOP-LACL'), ('FLOP', 'FINT', 'FLOP-FINT'),
                   ('FLOP', 'APPT', 'FLOP-APPT'),
               ('ldm', 'x', 'LDM-*'), ('Eror', 'nOne', 'EROR-*'), ('flop', 'botm', 'FLOP-BOTM'),
               ('ERROR', 'X', null), ('FLOP', 'GTDT', null), ('SCHD', 'DNLD', null), ('LDMX', 'X', null),
                   ('FLOP', '*', null), ('FLOP', 'BOT', null)) v (t, s, r);
insert into ignore_rule values ('LDM', 'SPEC');
select is(_match_ignore('LDM', 'spec'), 'LDM-SPEC', 'an exact rule is named before the one for all');
select throws_ok($$insert into ignore_rule values ('ldm', 'A')$$, '23514', null, 'rules are kept in upper case');

-- One message.
select is(tap.send(tap.with_meta(tap.flop('Botm', tap.rec('F1', '{"ESTT":"1"}')), '{"SEQN":"5"}')),
          '{"message_id": 1, "status": "SKIPPED", "reason": "ignored:FLOP-BOTM"}'::jsonb, 'SKIPPED with the rule');
select results_eq('select status::text, reason::text, identity_key::text, duplicate_of, backfill_status::text, type::text, styp::text from proc_state where message_id = 1',
                  $$values ('SKIPPED', 'ignored:FLOP-BOTM', null::text, null::bigint, 'PENDING', 'FLOP', 'Botm')$$,
                      'terminal, marked in the mailbox, no identity');
select is((select count(*) from message_identity), 0::bigint, 'nothing is bound');
select is(tap.flids(), '{}'::text[], 'no flight is touched');
select is((select count(*) from msg_event), 0::bigint, 'no event');
select is(tap.outcome(tap.with_meta(tap.flop('Botm', tap.rec('F1', '{"ESTT":"1"}')), '{"SEQN":"5"}')), 'SKIPPED',
          'the same again');
select matches(tap.reason(2), '^ignored:', 'is ignored again, not a duplicate');

-- TYPE and STYP are enough.
select is(tap.outcome('{"meta":{"TYPE":"LDM","STYP":"X"}}'), 'SKIPPED', 'no SNDR, no SEQN, no body');
select is(tap.outcome('{"meta":{"TYPE":"LDM","STYP":"X","SEQN":"abc"}}'), 'SKIPPED', 'a SEQN that is none');
select is(tap.outcome('{"meta":{"TYPE":"LDM","STYP":"X"},"error":{"reason":"broken body"}}'), 'SKIPPED',
          'a body that could not be decoded');
select is(tap.outcome('{"meta":{"TYPE":"LDM"}}'), 'DEAD/MALFORMED MX101', 'without STYP it is malformed');
select is(tap.outcome(jsonb_build_object('meta', jsonb_build_object('TYPE', 'LDM', 'STYP', repeat('x', 500)))),
          'SKIPPED', 'a STYP that is too long for its column');
select results_eq('select rule, messages, last_id from ignored_count order by rule',
          $$values ('FLOP-BOTM', 2::bigint, 2::bigint), ('LDM-*', 4, 7)$$, 'they are counted by rule');

select * from finish();
rollback;
