-- ================================================================================================
-- acknowledge_state_loss
-- Purpose   : Way out of MX901 when no restore is possible.
-- Params    : p_operator, p_reason: kept in operator_audit
--             p_now: clock, null = clock_timestamp()
-- Returns   : {"lost", "list_rows", "states"}: lost members, rows of lists taken out (0 when nothing is lost), states closed that cannot be sent
-- Errors    : MX001 operator or reason missing
-- Locks     : pipeline_lock row FLIGHT_SCHD_WRITER
-- Reads     : schd_gen_flid, flight_schd, flight_tombstone, msg_event
-- Writes    : schd_gen_flid, msg_event, pipeline_lock, operator_audit
-- Called by : operators
-- Sources   : D25, US-03/8
-- Oracle    : msgx_ops.acknowledge_state_loss
-- ================================================================================================
create or replace function acknowledge_state_loss(p_operator text, p_reason text, p_now timestamptz) returns jsonb
language plpgsql volatile security definer
as $$
declare
    v_now    timestamptz := _resolve_now(p_now);
    v_detail jsonb;
begin
    if coalesce(trim(p_operator), '') = '' or coalesce(trim(p_reason), '') = '' then
        perform _raise('MX001', 'acknowledge_state_loss needs the operator and the reason', null);
    end if;
    perform _lock_row();
    v_detail := jsonb_build_object(
        'lost', (select count(*) from _lost_members(null)),
        'list_rows', (select count(*) from schd_gen_flid));
    -- A STATE of nothing can never be sent; a newer event of its flight closes it.
    with closed as (
        update msg_event e
           set status = 'DEAD', last_error = 'the flight was lost before this state was sent (acknowledge_state_loss)'
         where e.status = 'PENDING' and e.target = 'KAFKA:schd' and e.kind = 'STATE'
           and not exists (select 1 from flight_schd f where f.flid = e.flid)
           and not exists (select 1 from msg_event t
                            where t.status = 'PENDING' and t.target = 'KAFKA:schd' and t.flid = e.flid and t.kind = 'TOMBSTONE'
                              and t.event_id > e.event_id)
        returning e.event_id
    )
    select v_detail || jsonb_build_object('states', count(*)) into v_detail from closed c;
    -- A list of which nothing is lost is still needed: the next plan finds by it what it has to delete.
    if v_detail ->> 'lost' = '0' then
        v_detail := v_detail || '{"list_rows": 0}';
    else
        delete from schd_gen_flid;
        -- Versions may have gone back with the lost rows: a new epoch makes consumers order correctly.
        update pipeline_lock set epoch = epoch + 1 where name = 'FLIGHT_SCHD_WRITER';
    end if;
    insert into operator_audit (done_at, action, operator, session_name, reason, detail)
    values (v_now, 'acknowledge_state_loss', left(p_operator, 200), session_user, left(p_reason, 1000), v_detail);
    return v_detail;
end;
$$;

comment on function acknowledge_state_loss(text, text, timestamptz) is 'Accepts that flight rows were lost: empties the lists so that the next plans rebuild (D25).';
revoke all on function acknowledge_state_loss(text, text, timestamptz) from public;
grant execute on function acknowledge_state_loss(text, text, timestamptz) to :"operator";
