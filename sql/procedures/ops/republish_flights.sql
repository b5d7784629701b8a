-- ================================================================================================
-- republish_flights
-- Purpose   : Let a new or doubtful consumer start from whole states: one STATE event per flight, as it is now.
-- Params    : p_flids: these flights; a deleted one gets its TOMBSTONE again. Null = by day, or all
--             p_fday: flights of this operating day, null = all
--             p_operator, p_reason: for the audit, required
--             p_now: clock, null = clock_timestamp()
-- Returns   : events added
-- Errors    : MX001 no operator or reason, flights and day together; MX002 a named flight was never there
-- Locks     : pipeline_lock row FLIGHT_SCHD_WRITER
-- Reads     : flight_schd, flight_tombstone
-- Writes    : operator_audit, the outbox through _add_events
-- Called by : driver (republish), operators by hand
-- Sources   : US-07/3, FS-8
-- Oracle    : msgx_ops.republish_flights
-- ================================================================================================
create or replace function republish_flights(p_flids text[], p_fday date, p_operator text, p_reason text, p_now timestamptz) returns integer
language plpgsql volatile security definer
set jit = off
as $$
declare
    v_now     timestamptz := _resolve_now(p_now);
    v_unknown text;
    v_added   integer;
begin
    if coalesce(btrim(p_operator), '') = '' or coalesce(btrim(p_reason), '') = '' then
        perform _raise('MX001', 'republish_flights needs an operator and a reason', null);
    end if;
    if p_flids is not null and p_fday is not null then
        perform _raise('MX001', 'republish_flights takes flights or a day, not both', null);
    end if;
    perform _lock_row();
    select min(w.flid collate "C") into v_unknown from unnest(p_flids) as w (flid)
     where not exists (select 1 from flight_schd f where f.flid = w.flid)
       and not exists (select 1 from flight_tombstone t where t.flid = w.flid);
    if v_unknown is not null then
        perform _raise('MX002', format('flight %s was never there', left(v_unknown, 20)), null);
    end if;
    -- Versions stay, so a consumer that is up to date ignores them.
    v_added := _add_events(null, (
        select array_agg(row('KAFKA:schd', s.kind, s.flid, s.state_version, null)::outbox_entry order by s.flid collate "C")
          from (select 'STATE' as kind, f.flid, f.state_version
                  from flight_schd f
                 where (p_flids is null or f.flid = any (p_flids)) and (p_fday is null or f.fday = p_fday)
                union all
                select 'TOMBSTONE', t.flid, t.state_version
                  from flight_tombstone t
                 where t.flid = any (p_flids) and not exists (select 1 from flight_schd f where f.flid = t.flid)) s), v_now);
    insert into operator_audit (done_at, action, operator, session_name, reason, detail)
    values (v_now, 'republish_flights', left(p_operator, 200), session_user, left(p_reason, 1000),
            jsonb_build_object('events', v_added, 'fday', p_fday, 'flights', cardinality(p_flids)));
    return v_added;
end;
$$;

comment on function republish_flights(text[], date, text, text, timestamptz) is 'Adds a STATE event per flight as it is now, so that a consumer can start from whole states (US-07/3).';
revoke all on function republish_flights(text[], date, text, text, timestamptz) from public;
grant execute on function republish_flights(text[], date, text, text, timestamptz) to :"operator";
