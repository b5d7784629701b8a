-- ================================================================================================
-- _day_of_month
-- Purpose   : Check a day without an exception block.
-- Params    : p_first: first of the month; p_day: 1-31
-- Returns   : local midnight, or null
-- Errors    : none
-- Locks     : none
-- Reads     : none
-- Writes    : none
-- Called by : _sis_day
-- Sources   : D9
-- Oracle    : msgx_schedule.day_of_month
-- ================================================================================================
create or replace function _day_of_month(p_first date, p_day integer) returns timestamp
language sql immutable
as $$
    select case when p_day between 1 and extract(day from p_first + interval '1 month' - interval '1 day')
                then p_first + make_interval(days => p_day - 1) end
$$;

comment on function _day_of_month(date, integer) is 'The given day of a month, or null when the month has no such day.';
revoke all on function _day_of_month(date, integer) from public;
