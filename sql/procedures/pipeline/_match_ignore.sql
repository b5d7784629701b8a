-- ================================================================================================
-- _match_ignore
-- Purpose   : Decide whether a kind is ignored, in any case of letters.
-- Params    : p_type, p_styp: as on the wire
-- Returns   : rule as TYPE-STYP, null = none
-- Errors    : none
-- Locks     : none
-- Reads     : ignore_rule
-- Writes    : none
-- Called by : process_message
-- Sources   : US-04/1, D36
-- Oracle    : msgx_pipeline.match_ignore
-- ================================================================================================
create or replace function _match_ignore(p_type text, p_styp text) returns text
language plpgsql stable
as $$
begin
    return (
        select r.type || '-' || r.styp
          from ignore_rule r
         where r.type = upper(p_type)
           and r.styp in ('*', upper(p_styp))
         order by r.styp desc
         limit 1
    );
end;
$$;

comment on function _match_ignore(text, text) is 'The ignore rule that a kind meets, as TYPE-STYP, or null (US-04).';
revoke all on function _match_ignore(text, text) from public;
