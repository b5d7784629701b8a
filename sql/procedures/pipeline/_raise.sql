-- ================================================================================================
-- _raise
-- Purpose   : The one place that raises errors of this product.
-- Params    : p_sqlstate: MXnnn
--             p_message: names the thing, the rule and the next step, never values of a message
--             p_detail: JSON for programs, may be null
-- Returns   : never
-- Errors    : the SQLSTATE given
-- Locks     : none
-- Reads     : none
-- Writes    : none
-- Called by : every routine that refuses something
-- Sources   : contract 4
-- Oracle    : msgx_pipeline.raise_error (MXdnn is -20dnn)
-- ================================================================================================
create or replace function _raise(p_sqlstate text, p_message text, p_detail jsonb) returns void
language plpgsql volatile
as $$
begin
    raise exception using
        errcode = p_sqlstate,
        message = left(p_message, 4000),
        detail  = coalesce(p_detail, '{}'::jsonb)::text,
        hint    = 'docs/reference/errors.md#' || lower(p_sqlstate);
end;
$$;

comment on function _raise(text, text, jsonb) is 'Raises an error with SQLSTATE, detail as JSON and the runbook anchor as hint.';
revoke all on function _raise(text, text, jsonb) from public;
