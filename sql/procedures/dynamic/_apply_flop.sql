-- ================================================================================================
-- _apply_flop
-- Purpose   : Merge the fields that a dynamic event carries; everything else stays.
-- Params    : p_message_id; p_command: FLOP; p_kind: its row of flop_kind; p_dttm: full DTTM or null; p_now
-- Returns   : result: records, written, created, not_applied ([{"flid", "reason": missing | deleted}]), events
-- Errors    : MX101, MX102, MX103 content; MX901 state lost
-- Locks     : none
-- Reads     : flight_schd, flight_tombstone, schd_gen_flid, flight_field
-- Writes    : flight_schd and details, msg_event
-- Called by : process_message
-- Sources   : FS-4.3, FS-5, US-05, D8, D12, D13, D25, D37
-- Oracle    : msgx_dynamic.apply_flop
-- ================================================================================================
create or replace function _apply_flop(p_message_id bigint, p_command jsonb, p_kind flop_kind, p_dttm text, p_now timestamptz) returns jsonb
language plpgsql volatile
as $$
declare
    v_meta    jsonb := p_command -> 'meta';
    v_ignored jsonb;
    v_count   integer;
    v_from    integer := 1;
    v_next    integer;
    v_records jsonb[];
    v_before  bigint[];
    v_batch   jsonb;
    v_changes flight_change[];
    v_missed  jsonb := '[]'::jsonb;
    v_lost    text;
    v_written integer := 0;
    v_created integer := 0;
    v_entries outbox_entry[] := '{}'::outbox_entry[];
    v_events  integer;
begin
    v_ignored := _check_flights(p_message_id, p_command, p_kind.keys);
    v_count := jsonb_array_length(p_command -> 'flights');
    if v_count = 0 then
        perform _refuse('MX101', p_message_id, null, 'FLOP', 'the message has no record');
    end if;
    perform _plan_for_sets(v_count);
    -- Records up to the first repeated FLID form one set; the next set sees what this one wrote (D8).
    if v_count > 1 then
        select array_agg(e.j order by e.ord), array_agg(coalesce(e.before, 0) order by e.ord)
          into v_records, v_before
          from (select r.j, r.ord, lag(r.ord) over (partition by r.j ->> 'FLID' order by r.ord) as before
                  from jsonb_array_elements(p_command -> 'flights') with ordinality as r (j, ord)) e;
    end if;
    while v_from <= v_count loop
        v_next := v_from + 1;
        while v_next <= v_count and v_before[v_next] < v_from loop
            v_next := v_next + 1;
        end loop;
        v_batch := case when v_count = 1 then p_command -> 'flights' else to_jsonb(v_records[v_from:v_next - 1]) end;
        v_changes := _stage_changes(v_batch, null, false, p_kind.collection_mode = 'APPLY');
        if exists (select 1 from unnest(v_changes) c where c.is_new) then
            -- No row and no tombstone, yet on a current list: not a missing flight but lost state (D25).
            select min(m) into v_lost
              from _lost_members((select array_agg(c.flid::text) from unnest(v_changes) c where c.is_new)) m;
            if v_lost is not null then
                perform _raise('MX901', format('message %s, flight %s: state is lost (on a current list, no row, no tombstone); restore the database, or call acknowledge_state_loss',
                                               p_message_id, v_lost), jsonb_build_object('flids', jsonb_build_array(v_lost)));
            end if;
            select v_missed || coalesce(jsonb_agg(jsonb_build_object(
                       'flid', c.flid, 'reason', case when c.state_version > 1 then 'deleted' else 'missing' end) order by c.ord), '[]')
              into v_missed
              from unnest(v_changes) c
             where c.is_new and (c.state_version > 1 or p_kind.on_missing = 'IGNORE');
            select coalesce(array_agg(c order by c.ord), '{}') into v_changes
              from unnest(v_changes) c
             where not (c.is_new and (c.state_version > 1 or p_kind.on_missing = 'IGNORE'));
            v_created := v_created + (select count(*) from unnest(v_changes) c where c.is_new);
        end if;
        if v_changes <> '{}' then
            perform _write_flights(p_message_id, v_changes, p_dttm, p_now);
            v_written := v_written + cardinality(v_changes);
            v_entries := v_entries || (
                select array_agg(e.entry order by c.ord, e.ord)
                  from unnest(v_changes) c
                 cross join lateral (values
                     (1, row('KAFKA:msg', 'NOTICE', c.flid, c.state_version,
                             _build_notice(p_message_id, v_meta, c.flid, c.carried))::outbox_entry),
                     (2, row('KAFKA:schd', 'STATE', c.flid, c.state_version, null)::outbox_entry)) as e (ord, entry)
                 where e.ord = 2 or p_kind.notify);
        end if;
        v_from := v_next;
    end loop;
    v_events := _add_events(p_message_id, v_entries, p_now);
    return jsonb_strip_nulls(jsonb_build_object(
        'records', v_count, 'written', v_written, 'created', nullif(v_created, 0),
        'not_applied', nullif(v_missed, '[]'), 'ignored_fields', v_ignored, 'events', v_events));
end;
$$;

comment on function _apply_flop(bigint, jsonb, flop_kind, text, timestamptz) is 'Applies a dynamic event: its records in order, all or nothing (FS-4.3, D13, D37).';
revoke all on function _apply_flop(bigint, jsonb, flop_kind, text, timestamptz) from public;
