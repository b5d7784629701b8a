-- ================================================================================================
-- _apply_adft
-- Purpose   : Add or change flights outside a plan; the day stays, or stays null.
-- Params    : p_message_id; p_command: SCHD ADFT; p_dttm: full DTTM or null; p_now
-- Returns   : result: records, written, created, equal, events
-- Errors    : MX101, MX102, MX103 content
-- Locks     : none
-- Reads     : flight_schd and details, flight_tombstone, flight_field
-- Writes    : flight_schd and details, msg_event
-- Called by : process_message
-- Sources   : FS-4.2-4, FS-4.2-5, US-05, D23, D24
-- Oracle    : msgx_dynamic.apply_adft
-- ================================================================================================
create or replace function _apply_adft(p_message_id bigint, p_command jsonb, p_dttm text, p_now timestamptz) returns jsonb
language plpgsql volatile
as $$
declare
    v_meta    jsonb := p_command -> 'meta';
    v_warn    boolean;
    v_ignored jsonb;
    v_changes flight_change[];
    v_staged  integer;
    v_notices outbox_entry[];
    v_mains   outbox_entry[];
    v_events  integer;
begin
    v_warn := _check_recs(p_message_id, p_command);
    perform _check_twice(p_message_id, p_command);
    v_ignored := _check_flights(p_message_id, p_command, '{}');
    perform _plan_for_sets(jsonb_array_length(p_command -> 'flights'));
    v_changes := _stage_changes(p_command -> 'flights', null, false, false);
    v_staged := cardinality(v_changes);

    -- Equal = every carried value is what the flight already has, empty and absent alike (D24).
    select coalesce(array_agg(c order by c.ord), '{}') into v_changes
      from unnest(v_changes) c
      left join lateral flight_projection(array[c.flid]) as p (doc) on true
     where c.is_new
        or exists (select 1 from jsonb_each(c.vals) v join flight_field f on f.tag = v.key
                    -- Only a text can hold JSON; a scalar is a string, whatever it looks like.
                    where case f.kind when 'scalar' then nullif(v.value #>> '{}', '') is distinct from p.doc ->> v.key
                          else _shown_value(v.value) is distinct from p.doc -> v.key end)
        or exists (select 1 from jsonb_each(c.sets) s
                    where exists (select 1 from flight_field f where f.tag = s.key)
                      and _shown_value(_shown_items(s.value, s.key)) is distinct from p.doc -> s.key);
    perform _write_flights(p_message_id, v_changes, p_dttm, p_now);

    select coalesce(array_agg(e.entry order by c.ord, e.ord), '{}') into v_notices
      from unnest(v_changes) c
     cross join lateral (values
         (1, row('KAFKA:msg', 'NOTICE', c.flid, c.state_version,
                 _build_notice(p_message_id, v_meta, c.flid, c.carried))::outbox_entry),
         (2, row('KAFKA:schd', 'STATE', c.flid, c.state_version, null)::outbox_entry)) as e (ord, entry);
    select _update_mains(p_message_id, v_meta,
               array_agg(c.vals ->> 'MAID' order by c.ord), array_agg(c.vals ->> 'FLNO' order by c.ord),
               array_agg(null::text), p_now)
      into v_mains
      from unnest(v_changes) c
     where c.is_new and c.vals ->> 'MAID' <> '' and c.vals ->> 'MAID' <> c.flid;
    v_events := _add_events(p_message_id, v_notices || v_mains, p_now);
    return jsonb_strip_nulls(jsonb_build_object(
        'records', v_staged, 'written', cardinality(v_changes),
        'created', (select count(*) from unnest(v_changes) c where c.is_new),
        'equal', nullif(v_staged - cardinality(v_changes), 0),
        'recs_mismatch', nullif(v_warn, false), 'ignored_fields', v_ignored, 'events', v_events));
end;
$$;

comment on function _apply_adft(bigint, jsonb, text, timestamptz) is 'Applies single flights (ADFT): no generation, no deletion; equal content changes nothing (D24).';
revoke all on function _apply_adft(bigint, jsonb, text, timestamptz) from public;
