-- ================================================================================================
-- _edit_mafl
-- Purpose   : Keep the list of a main flight in step with its shared flights.
-- Params    : p_text: mafl_text; p_add, p_remove: FLNO
-- Returns   : new text, or the same text when no token changed; an emptied list is empty text
-- Errors    : none
-- Locks     : none
-- Reads     : none
-- Writes    : none
-- Called by : _update_mains
-- Sources   : D23, US-05/4
-- Oracle    : msgx_dynamic.edit_mafl
-- ================================================================================================
create or replace function _edit_mafl(p_text text, p_add text[], p_remove text[]) returns text
language plpgsql immutable
as $$
declare
    v_text   text := coalesce(p_text, '');
    v_tokens text[];
    v_new    text[];
begin
    -- A JSON array is the sender's own structure and is left alone.
    if left(v_text, 1) = '[' then
        return p_text;
    end if;
    v_tokens := array_remove(regexp_split_to_array(v_text, '[,/; ]+'), '');
    select coalesce(array_agg(t.token order by t.ord), '{}') into v_new
      from unnest(v_tokens) with ordinality as t (token, ord) where t.token <> all (p_remove);
    select v_new || coalesce(array_agg(a.token order by a.ord), '{}') into v_new
      from (select n.token, min(n.ord) as ord from unnest(p_add) with ordinality as n (token, ord)
             where n.token <> '' and n.token <> all (v_new) group by n.token) a;
    if v_new = v_tokens then
        return p_text;
    end if;
    v_text := array_to_string(v_new, case when v_text like '%,%' then ',' when v_text like '%/%' then '/'
                                       when v_text like '%;%' then ';' when v_text like '% %' then ' ' else ',' end);
    -- A list that reads as the sender's own structure could not be read back.
    return case when left(v_text, 1) = '[' then p_text else v_text end;
end;
$$;

comment on function _edit_mafl(text, text[], text[]) is 'Adds and removes FLNO tokens of a shared-flight list, by whole token (D23).';
revoke all on function _edit_mafl(text, text[], text[]) from public;
