-- ================================================================================================
-- _apply_fdel
-- Purpose   : Remove flights; a target that is not there is fine.
-- Params    : p_message_id; p_command: FLOP/FDEL or FDEL; p_now
-- Returns   : result: records, deleted, not_applied, other_fields (carried, without effect), events
-- Errors    : MX101, MX102, MX103 content; MX901 state lost
-- Locks     : none
-- Reads     : flight_schd, flight_tombstone, schd_gen_flid, flight_field, flop_kind
-- Writes    : flight_tombstone, flight_schd and details, msg_event
-- Called by : process_message
-- Sources   : FS-0-7, US-05/4, D13, D18, D23, D25, D37, D41
-- Oracle    : msgx_dynamic.apply_fdel
-- ================================================================================================
create or replace function _apply_fdel(p_message_id bigint, p_command jsonb, p_now timestamptz) returns jsonb
language plpgsql volatile
as $$
declare
    v_meta    jsonb := p_command -> 'meta';
    v_ignored jsonb;
    v_given   text[];
    v_roots   text[];
    v_shared  text[];
    v_missed  jsonb;
    v_notify  boolean;
    v_lost    text;
    v_gone    outbox_entry[];
    v_late    outbox_entry[];
    v_main    text[];
    v_flno    text[];
    v_mains   outbox_entry[];
    v_events  integer;
begin
    v_ignored := _check_flights(p_message_id, p_command, '{}');
    select coalesce(array_agg(d.flid order by d.ord), '{}') into v_given
      from (select e.j ->> 'FLID' as flid, min(e.ord) as ord
              from jsonb_array_elements(p_command -> 'flights') with ordinality as e (j, ord) group by 1) d;
    if v_given = '{}' then
        perform _refuse('MX101', p_message_id, null, 'FLOP', 'the message has no record');
    end if;
    perform _plan_for_sets(cardinality(v_given));
    select coalesce(array_agg(g.flid order by g.ord) filter (where f.flid is not null), '{}'),
           jsonb_agg(jsonb_build_object('flid', g.flid, 'reason', case when t.flid is null then 'missing' else 'deleted' end) order by g.ord)
               filter (where f.flid is null)
      into v_roots, v_missed
      from unnest(v_given) with ordinality as g (flid, ord)
      left join flight_schd f on f.flid = g.flid
      left join flight_tombstone t on t.flid = g.flid;
    select min(m) into v_lost from _lost_members(v_given) m;
    if v_lost is not null then
        perform _raise('MX901', format('message %s, flight %s: state is lost (on a current list, no row, no tombstone); restore the database, or call acknowledge_state_loss',
                                       p_message_id, v_lost), jsonb_build_object('flids', jsonb_build_array(v_lost)));
    end if;
    v_shared := _shared_of(v_roots, '{}');
    select k.notify into v_notify from flop_kind k where k.styp = 'FDEL';

    select coalesce(array_agg(e.entry order by g.ord, e.ord) filter (where g.ord <= cardinality(v_roots)), '{}'),
           coalesce(array_agg(e.entry order by g.ord, e.ord) filter (where g.ord > cardinality(v_roots)), '{}')
      into v_gone, v_late
      from unnest(v_roots || v_shared) with ordinality as g (flid, ord)
      join flight_schd f on f.flid = g.flid
     cross join lateral (values
         (1, row('KAFKA:msg', 'NOTICE', f.flid, f.state_version + 1,
                 _build_notice(p_message_id, v_meta, f.flid, array['FDEL']))::outbox_entry),
         (2, row('KAFKA:schd', 'TOMBSTONE', f.flid, f.state_version + 1, null)::outbox_entry)) as e (ord, entry)
     where e.ord = 2 or v_notify;
    select array_agg(f.maid::text order by g.ord), array_agg(f.flno::text order by g.ord) into v_main, v_flno
      from unnest(v_roots) with ordinality as g (flid, ord)
      join flight_schd f on f.flid = g.flid
     where f.maid <> '' and f.maid <> f.flid and f.flno <> '' and f.maid <> all (v_roots || v_shared);
    perform _delete_flights(v_roots || v_shared, p_message_id, p_now);
    if v_main is not null then
        v_mains := _update_mains(p_message_id, v_meta, v_main, array_fill(null::text, array[cardinality(v_main)]), v_flno, p_now);
        if not v_notify then
            select array_agg(m order by m.flid collate "C") into v_mains from unnest(v_mains) m where m.kind <> 'NOTICE';
        end if;
    end if;
    v_events := _add_events(p_message_id, v_gone || v_mains || v_late, p_now);
    return jsonb_strip_nulls(jsonb_build_object(
        'records', jsonb_array_length(p_command -> 'flights'), 'deleted', cardinality(v_roots) + cardinality(v_shared),
        'not_applied', v_missed, 'ignored_fields', v_ignored,
        'other_fields', (select jsonb_agg(distinct k.tag) from jsonb_array_elements(p_command -> 'flights') as e (j)
                          cross join lateral unnest(_carried_keys(e.j)) as k (tag)),
        'events', v_events));
end;
$$;

comment on function _apply_fdel(bigint, jsonb, timestamptz) is 'Deletes flights (FDEL) with their shared flights; keeps the lists of mains in step (D23).';
revoke all on function _apply_fdel(bigint, jsonb, timestamptz) from public;
