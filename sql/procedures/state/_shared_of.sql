-- ================================================================================================
-- _shared_of
-- Purpose   : Never leave a shared flight without its main.
-- Params    : p_roots: flights that are deleted; p_listed: flights the package itself lists, they stay
-- Returns   : FLIDs in code-point order, whatever their day
-- Errors    : none
-- Locks     : none
-- Reads     : flight_schd
-- Writes    : none
-- Called by : _apply_snapshot, _apply_fdel
-- Sources   : D23, US-05/4
-- Oracle    : msgx_state.shared_of
-- ================================================================================================
create or replace function _shared_of(p_roots text[], p_listed text[]) returns text[]
language plpgsql stable
as $$
begin
    return (
        select coalesce(array_agg(f.flid::text order by f.flid collate "C"), '{}')
          from flight_schd f
         where f.maid <> '' and f.maid = any (p_roots) and f.maid <> f.flid
           and f.flid <> all (p_roots) and f.flid <> all (p_listed)
    );
end;
$$;

comment on function _shared_of(text[], text[]) is 'Shared (codeshare) flights of main flights that go, one level (D23).';
revoke all on function _shared_of(text[], text[]) from public;
