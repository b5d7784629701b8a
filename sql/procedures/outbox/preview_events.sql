-- ================================================================================================
-- preview_events
-- Purpose   : Export of pending events for files and tests; one statement, one snapshot.
-- Params    : none
-- Returns   : KAFKA:msg rows by event_id, then KAFKA:schd rows by event_id; value null = null tombstone (kafka.tombstone)
-- Errors    : none
-- Locks     : none
-- Reads     : msg_event, pipeline_lock, setting, flight_schd and details
-- Writes    : none
-- Called by : driver (replay --events)
-- Sources   : FS-8, US-07/2, D6, D19
-- Oracle    : msgx_outbox.preview_events
-- ================================================================================================
create or replace function preview_events()
returns table (target varchar, kind varchar, flid varchar, event_id bigint, message_id bigint, state_version bigint, updated_at text, epoch integer, value jsonb)
language plpgsql stable security definer
set jit = off
as $$
#variable_conflict use_column
declare
    v_epoch     integer;
    v_tombstone text := _get_setting('kafka.tombstone');
begin
    select l.epoch into v_epoch from pipeline_lock l where l.name = 'FLIGHT_SCHD_WRITER';
    return query
    with latest as (
        select distinct on (e.flid) e.* from msg_event e
         where e.status = 'PENDING' and e.target = 'KAFKA:schd'
         order by e.flid, e.event_id desc
    ), due as (
        select e.target, e.kind, e.flid, e.event_id, e.message_id, e.state_version, e.created_at, e.payload as value
          from msg_event e where e.status = 'PENDING' and e.target = 'KAFKA:msg'
        union all
        select l.target, l.kind, l.flid, l.event_id, coalesce((p.doc ->> 'LAST_MESSAGE_ID')::bigint, l.message_id),
               coalesce((p.doc ->> 'STATE_VERSION')::bigint, l.state_version), l.created_at,
               case when l.kind = 'STATE' then p.doc
                    when v_tombstone = 'object' then jsonb_build_object('DELETED', true, 'FLID', l.flid) end
          from latest l
          left join flight_projection((select array_agg(s.flid::text) from latest s where s.kind = 'STATE')) as p (doc)
            on p.doc ->> 'FLID' = l.flid and l.kind = 'STATE'
         where l.kind = 'TOMBSTONE' or p.doc is not null
    )
    select d.target, d.kind, d.flid, d.event_id, d.message_id, d.state_version,
           coalesce(case when d.kind = 'STATE' then d.value ->> 'UPDATED_AT' end,
                    to_char(d.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')),
           v_epoch, d.value
      from due d
     order by d.target, d.event_id;
end;
$$;

comment on function preview_events() is 'What the relay would deliver now: notices in order, then one current STATE or TOMBSTONE per flight. Marks nothing.';
revoke all on function preview_events() from public;
grant execute on function preview_events() to :"driver";
grant execute on function preview_events() to :"operator";
