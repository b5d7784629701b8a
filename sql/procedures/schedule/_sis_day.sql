-- ================================================================================================
-- _sis_day
-- Purpose   : Read SIS days with an own month table: no server locale, no server zone.
-- Params    : p_text: DDMONYY, DDMONYYHHMM (any case, strict width, year 20YY) or YYYY-MM-DD
-- Returns   : local timestamp, null when invalid
-- Errors    : none
-- Locks     : none
-- Reads     : none
-- Writes    : none
-- Called by : _snapshot_day
-- Sources   : D9, FS-6.3, contract 1
-- Oracle    : msgx_schedule.sis_day
-- ================================================================================================
create or replace function _sis_day(p_text text) returns timestamp
language plpgsql immutable
as $$
declare
    v_month integer;
    v_first date;
begin
    if p_text ~ '^20[0-9]{2}-[0-9]{2}-[0-9]{2}$' then
        v_month := substr(p_text, 6, 2)::integer;
        if v_month not between 1 and 12 then
            return null;
        end if;
        v_first := make_date(left(p_text, 4)::integer, v_month, 1);
        return _day_of_month(v_first, substr(p_text, 9, 2)::integer);
    end if;
    if p_text !~* '^[0-9]{2}[a-z]{3}[0-9]{2}(([01][0-9]|2[0-3])[0-5][0-9])?$' then
        return null;
    end if;
    v_month := array_position(array['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'],
                              upper(substr(p_text, 3, 3)));
    if v_month is null then
        return null;
    end if;
    v_first := make_date(2000 + substr(p_text, 6, 2)::integer, v_month, 1);
    return _day_of_month(v_first, left(p_text, 2)::integer)
         + make_interval(hours => coalesce(nullif(substr(p_text, 8, 2), ''), '0')::integer,
                         mins  => coalesce(nullif(substr(p_text, 10, 2), ''), '0')::integer);
end;
$$;

comment on function _sis_day(text) is 'Local instant of a SIS time DDMONYY[HHMM] or ISO date, or null when it is none (D9).';
revoke all on function _sis_day(text) from public;
