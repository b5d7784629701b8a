-- ================================================================================================
-- _refuse
-- Purpose   : Refuse the content of a message with one uniform reason.
-- Params    : p_sqlstate: MX1nn
--             p_message_id, p_flid, p_tag: what it is about; flight and tag may be null
--             p_rule: the rule and the next step
-- Returns   : never
-- Errors    : MX1nn as given
-- Locks     : none
-- Reads     : none
-- Writes    : none
-- Called by : every routine that refuses content
-- Sources   : D14, D40
-- Oracle    : msgx_pipeline.refuse
-- ================================================================================================
create or replace function _refuse(p_sqlstate text, p_message_id bigint, p_flid text, p_tag text, p_rule text) returns void
language plpgsql volatile
as $$
begin
    perform _raise(
        p_sqlstate,
        'message ' || p_message_id
            || coalesce(', flight ' || left(p_flid, 20), '')
            || coalesce(', tag ' || left(p_tag, 60), '')
            || ': ' || p_rule,
        jsonb_strip_nulls(jsonb_build_object('message_id', p_message_id, 'flid', left(p_flid, 20), 'tag', left(p_tag, 60))));
end;
$$;

comment on function _refuse(text, bigint, text, text, text) is 'Refuses the content of a message: names message, flight, tag and rule.';
revoke all on function _refuse(text, bigint, text, text, text) from public;
