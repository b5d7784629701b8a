-- ================================================================================================
-- _snapshot_day
-- Purpose   : Find the day whose list is replaced.
-- Params    : p_message_id: for the reason; p_command: the plan
-- Returns   : operating day
-- Errors    : MX101 no day, several days, no date
-- Locks     : none
-- Reads     : setting
-- Writes    : none
-- Called by : _apply_snapshot
-- Sources   : D9, US-06 base
-- Oracle    : msgx_schedule.snapshot_day
-- ================================================================================================
create or replace function _snapshot_day(p_message_id bigint, p_command jsonb) returns date
language plpgsql stable
as $$
declare
    v_day    date;
    v_starts interval;
    v_bad    text;
    v_days   date[];
begin
    if p_command -> 'schedule' ? 'FDAY' then
        v_day := _sis_day(left(p_command -> 'schedule' ->> 'FDAY', 10))::date;
        if v_day is null or p_command -> 'schedule' ->> 'FDAY' !~ '^([^-]{7}|.{4}-.{2}-.{2})$' then
            perform _refuse('MX101', p_message_id, null, 'FDAY', 'the header day is no date (DDMONYY or YYYY-MM-DD)');
        end if;
        return v_day;
    end if;
    v_starts := _get_setting('schedule.day_starts_at')::interval;
    with rec as (
        select e.ord, e.j ->> 'FLID' as flid, coalesce(nullif(e.j -> 'set' ->> 'SODT', ''), e.j -> 'set' ->> 'STD') as at
          from jsonb_array_elements(p_command -> 'flights') with ordinality as e (j, ord)
    ), dated as (
        select r.ord, r.flid, case when r.at ~ '^.{11}$' then (_sis_day(r.at) - v_starts)::date end as fday from rec r
    )
    select (array_agg(d.flid order by d.ord) filter (where d.fday is null))[1],
           array_agg(distinct d.fday) filter (where d.fday is not null)
      into v_bad, v_days from dated d;
    if v_bad is not null then
        perform _refuse('MX101', p_message_id, v_bad, 'SODT',
            'without a header FDAY every record needs SODT (or STD) as DDMONYYHHMM');
    elsif v_days is null then
        perform _refuse('MX101', p_message_id, null, 'FDAY', 'a plan without records needs a header FDAY');
    elsif cardinality(v_days) > 1 then
        perform _refuse('MX101', p_message_id, null, 'SODT',
            format('the records belong to %s operating days and there is no header FDAY; the whole package is refused', cardinality(v_days)));
    end if;
    return v_days[1];
end;
$$;

comment on function _snapshot_day(bigint, jsonb) is 'The operating day that a plan covers (D9); refuses the package when there is not exactly one.';
revoke all on function _snapshot_day(bigint, jsonb) from public;
