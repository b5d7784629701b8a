-- ================================================================================================
-- scan_inbox
-- Purpose   : Keep the holes of the mailbox and say how far its rows may be taken now.
-- Params    : p_source: mailbox
--             p_after: watermark the page was read above
--             p_ids: page of mailbox ids above it, ascending; p_max_id: highest id there, null = empty
--             p_open_trx: transactions of the mailbox that were open before the page was read, null = cannot be known
--             p_id_step: distance of the ids that the mailbox allots
--             p_now: clock, null = clock_timestamp()
-- Returns   : {"upto": id up to which rows may be taken, "holes": missing ranges that hold back, "given_up": ranges given up just now}
-- Errors    : MX001; MX203 the watermark is not p_after; MX311 highest id below the watermark; MX312 no cursor
-- Locks     : none
-- Reads     : setting
-- Writes    : inbox_cursor, inbox_gap
-- Called by : driver (poller)
-- Sources   : US-01/3, US-01/4, US-01/5, D38
-- Oracle    : msgx_inbox.scan_inbox
-- ================================================================================================
create or replace function scan_inbox(
    p_source text, p_after bigint, p_ids bigint[], p_max_id bigint, p_open_trx text[], p_id_step integer, p_now timestamptz
) returns jsonb
language plpgsql volatile security definer
as $$
declare
    v_now      timestamptz := _resolve_now(p_now);
    v_delay    interval := make_interval(secs => _get_setting('pipeline.max_commit_delay')::integer);
    v_last     bigint := p_ids[cardinality(p_ids)];
    v_seen     inbox_gap[];
    v_holes    inbox_gap[];
    v_hole     bigint;
    v_given_up integer;
begin
    if p_ids is null or coalesce(p_id_step, 0) < 1 or exists (select 1 from unnest(p_ids) i where i is null or i <= p_after) then
        perform _raise('MX001', 'scan_inbox needs ids above p_after and a step from 1', null);
    end if;
    -- The update locks the cursor: two pollers take turns.
    update inbox_cursor c set scanned_at = v_now, failures = 0 where c.source = p_source and c.watermark = p_after;
    if not found then
        perform _refuse_scan(p_source, p_after);
    end if;
    if p_max_id < p_after then
        perform _raise('MX311', format('the highest id of mailbox %s is %s, below the watermark %s; it was restored or numbered anew, reading it stops',
                                       p_source, p_max_id, p_after), null);
    end if;
    if v_last is null then
        return jsonb_build_object('upto', p_after, 'holes', 0, 'given_up', 0);
    end if;

    -- What is missing in the page; where a range is known in part, that part keeps its age.
    select array_agg(g.* order by g.first_id) into v_seen
      from inbox_gap g where g.source = p_source and g.filled_at is null and g.last_id > p_after and g.first_id <= v_last;
    with missing as (
        select i.id - p_id_step * ((i.id - i.before - 1) / p_id_step) as first_id, i.id - p_id_step as last_id
          from (select p.id, coalesce(lag(p.id) over (order by p.id), p_after) as before from unnest(p_ids) as p (id)) i
         where i.id - i.before > p_id_step
    ), known as (
        select greatest(m.first_id, g.first_id) as first_id, least(m.last_id, g.last_id) as last_id,
               least(g.seen_at, v_now) as seen_at, g.waits_for, g.given_up_at
          from missing m
          join unnest(v_seen) g on g.last_id >= m.first_id and g.first_id <= m.last_id
    ), pieces as (
        select k.* from known k
        union all
        select lower(r.r), upper(r.r) - 1, v_now, null, null
          from missing m
         cross join lateral unnest(int8multirange(int8range(m.first_id, m.last_id, '[]'))
                   - coalesce((select range_agg(int8range(k.first_id, k.last_id, '[]')) from known k), '{}')) as r (r)
    ), aged as (
        -- A transaction that will fill a hole got its id before the hole was seen, so a second later, past the delay with
        -- which innodb_trx shows, it is open and listed, or has ended. p_open_trx is read before the page: when none that
        -- was listed is open any more, all of them had ended, and a committed row would be in this page. It never comes.
        select p.first_id, p.last_id, p.seen_at, p.given_up_at,
               coalesce(p.waits_for, case when p.seen_at <= v_now - interval '1 second' then p_open_trx end) as waits_for
          from pieces p
    )
    select array_agg(row(p_source, a.first_id, a.last_id, a.seen_at, a.waits_for,
               coalesce(a.given_up_at, case when v_now - a.seen_at >= v_delay or not a.waits_for && p_open_trx then v_now end),
               null)::inbox_gap order by a.first_id)
      into v_holes from aged a;

    update inbox_gap g set filled_at = v_now
     where g.source = p_source and g.filled_at is null and g.last_id > p_after and g.first_id <= v_last
       and not exists (select 1 from unnest(v_holes) h where h.last_id >= g.first_id and h.first_id <= g.last_id);
    delete from inbox_gap g
     where g.source = p_source and g.filled_at is null and g.last_id > p_after and g.first_id <= v_last
       and not exists (select 1 from unnest(v_holes) h where h.first_id = g.first_id);
    insert into inbox_gap as g select h.* from unnest(v_holes) h
    on conflict (source, first_id) do update
       set last_id = excluded.last_id, seen_at = excluded.seen_at, waits_for = excluded.waits_for,
           given_up_at = excluded.given_up_at, filled_at = null
     where (g.last_id, g.seen_at, g.waits_for, g.given_up_at, g.filled_at)
           is distinct from (excluded.last_id, excluded.seen_at, excluded.waits_for, excluded.given_up_at, null::timestamptz);

    select min(h.first_id) filter (where h.given_up_at is null),
           count(*) filter (where h.given_up_at = v_now and not exists (
               select 1 from unnest(v_seen) s where s.given_up_at is not null and s.last_id >= h.first_id and s.first_id <= h.last_id))
      into v_hole, v_given_up from unnest(v_holes) h;
    return jsonb_build_object(
        'upto', coalesce((select max(i) from unnest(p_ids) i where v_hole is null or i < v_hole), p_after),
        'holes', (select count(*) from unnest(v_holes) h where h.given_up_at is null), 'given_up', v_given_up);
end;
$$;

comment on function scan_inbox(text, bigint, bigint[], bigint, text[], integer, timestamptz) is 'Ages the holes of the mailbox and returns how far its rows may be taken (US-01/5).';
revoke all on function scan_inbox(text, bigint, bigint[], bigint, text[], integer, timestamptz) from public;
grant execute on function scan_inbox(text, bigint, bigint[], bigint, text[], integer, timestamptz) to :"driver";
