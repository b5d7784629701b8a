-- ================================================================================================
-- acquire_writer
-- Purpose   : Make this session the one writer. Commit at once afterwards: the suspect of an unclean end is charged an attempt before it is decoded.
-- Params    : p_now: clock, null = clock_timestamp()
-- Returns   : {"epoch", "unclean", "suspect"?, "already"?}
-- Errors    : MX402 another writer; MX901 state lost (the right is given back)
-- Locks     : session advisory lock of the schema, then pipeline_lock row FLIGHT_SCHD_WRITER
-- Reads     : pipeline_lock, proc_state, schd_gen_flid, flight_schd, flight_tombstone
-- Writes    : pipeline_lock, proc_state (suspect)
-- Called by : driver at start
-- Sources   : OPS-1, D25, D35
-- Oracle    : msgx_native.acquire_writer
-- ================================================================================================
create or replace function acquire_writer(p_now timestamptz) returns jsonb
language plpgsql volatile security definer
as $$
declare
    v_now     timestamptz := _resolve_now(p_now);
    v_key     bigint := _writer_key();
    v_lock    pipeline_lock%rowtype;
    -- The instant of acquiring: the start of a session is not visible to the owner of this routine.
    v_started timestamptz := clock_timestamp();
    v_unclean boolean;
    v_head    bigint;
    v_lost    text[];
    v_holder  integer;
begin
    select l.* into v_lock from pipeline_lock l where l.name = 'FLIGHT_SCHD_WRITER';
    if v_lock.released_at is null and v_lock.writer_pid = pg_backend_pid()
       and _started_here(v_lock.writer_started)
    then
        return jsonb_build_object('epoch', v_lock.epoch, 'unclean', false, 'already', true);
    end if;
    select k.pid into v_holder from pg_catalog.pg_locks k
     where k.locktype = 'advisory' and k.objsubid = 1 and k.granted
       and (k.classid::bigint << 32) | k.objid::bigint = v_key
       and k.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database());
    -- A transaction that took the right and rolled back has left this session the lock.
    if v_holder is distinct from pg_backend_pid() and not pg_try_advisory_lock(v_key) then
        perform _raise('MX402',
            format('another writer is active (pid %s); stop it first, or use another schema', coalesce(v_holder::text, 'unknown')), null);
    end if;
    select array_agg(m) into v_lost from (select m from _lost_members(null) m order by m collate "C" limit 20) s;
    if v_lost is not null then
        perform pg_advisory_unlock(v_key);
        perform _raise('MX901',
            format('state is lost: %s flights of a current list have neither a row nor a tombstone (first: %s); restore the database, or call acknowledge_state_loss',
                   (select count(*) from _lost_members(null)), v_lost[1]),
            jsonb_build_object('flids', to_jsonb(v_lost)));
    end if;
    v_lock := _lock_row();
    v_unclean := v_lock.writer_pid is not null and v_lock.released_at is null;
    select min(s.message_id) into v_head from proc_state s where s.status in ('PENDING', 'FAILED');
    update pipeline_lock
       set writer_pid     = pg_backend_pid(),
           writer_started = v_started,
           released_at    = null,
           queue_floor    = coalesce(v_head, (select max(s.message_id) from proc_state s), 0)
     where name = 'FLIGHT_SCHD_WRITER';
    -- One session may write for several airports: the variable holds an instant for each.
    perform set_config('msgx.writer_started',
                       concat_ws(' ', nullif(current_setting('msgx.writer_started', true), ''), extract(epoch from v_started)), false);
    -- Strict order makes the head the suspect when the last writer died (D35).
    if v_unclean and v_head is not null then
        perform _book_failure(v_head, 'INFRA', 'retry', null,
            format('message %s was the head when a writer ended without releasing its right', v_head), v_now);
    else
        v_head := null;
    end if;
    return jsonb_strip_nulls(jsonb_build_object('epoch', v_lock.epoch, 'unclean', v_unclean, 'suspect', v_head));
end;
$$;

comment on function acquire_writer(timestamptz) is 'Takes the write right for this session (OPS-1); MX402 when somebody else has it.';
revoke all on function acquire_writer(timestamptz) from public;
grant execute on function acquire_writer(timestamptz) to :"driver";
