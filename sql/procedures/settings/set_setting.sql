-- ================================================================================================
-- set_setting
-- Purpose   : Change a setting and keep its history.
-- Params    : p_name: dotted name
--             p_value: new value, must match setting.pattern
--             p_now: clock, null = clock_timestamp()
-- Returns   : nothing; the same value again changes nothing
-- Errors    : MX003 unknown name or value
-- Locks     : pipeline_lock row FLIGHT_SCHD_WRITER
-- Reads     : setting
-- Writes    : setting, setting_history
-- Called by : driver (settings set), operators
-- Sources   : docs/decisions.md, contract 3
-- Oracle    : msgx_ops.set_setting
-- ================================================================================================
create or replace function set_setting(p_name text, p_value text, p_now timestamptz) returns void
language plpgsql volatile security definer
as $$
declare
    v_now     timestamptz := _resolve_now(p_now);
    v_setting setting%rowtype;
begin
    perform _lock_row();
    select s.* into v_setting from setting s where s.name = p_name;
    if not found then
        perform _raise('MX003', format('no setting is named %s; the table setting lists the names', left(p_name, 60)), null);
    end if;
    if p_value is null or p_value !~ ('^(?:' || v_setting.pattern || ')$') then
        perform _raise('MX003', format('setting %s does not take this value; allowed: %s', p_name, v_setting.pattern), null);
    end if;
    if p_name = 'airport.time_zone' and not exists (select 1 from pg_catalog.pg_timezone_names z where z.name = p_value) then
        perform _raise('MX003', format('setting %s does not take this value; allowed: a name of pg_timezone_names', p_name), null);
    end if;
    if p_value = v_setting.value then
        return;
    end if;
    insert into setting_history (name, old_value, new_value, changed_at, changed_by)
    values (p_name, v_setting.value, p_value, v_now, session_user);
    update setting set value = p_value, changed_at = v_now, changed_by = session_user where name = p_name;
end;
$$;

comment on function set_setting(text, text, timestamptz) is 'Changes one setting; unknown names and values are refused (MX003).';
revoke all on function set_setting(text, text, timestamptz) from public;
grant execute on function set_setting(text, text, timestamptz) to :"driver";
grant execute on function set_setting(text, text, timestamptz) to :"operator";
