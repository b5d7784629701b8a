-- Short forms of commands (contract 2) for the test files. Schema tap holds pgTAP and these helpers.

create function tap.rec(
    p_flid text, p_set jsonb default null, p_replace jsonb default null, p_clear jsonb default null,
        p_apply jsonb default null
) returns jsonb
language sql immutable
as $$
    select jsonb_build_object('FLID', p_flid)
        || case when p_set is null then '{}' else jsonb_build_object('set', p_set) end
        || case when p_replace is null then '{}' else jsonb_build_object('replace', p_replace) end
        || case when p_clear is null then '{}' else jsonb_build_object('clear', p_clear) end
        || case when p_apply is null then '{}' else jsonb_build_object('apply', p_apply) end
$$;

-- A record without SEQN gets the id of its message when it is sent.
create function tap.meta(p_type text, p_styp text) returns jsonb
language sql immutable
as $$
    select jsonb_build_object('SNDR', 'AODB', 'TYPE', p_type, 'STYP', p_styp, 'DTTM', '20260909080000')
$$;

create function tap.flop(p_styp text, variadic p_recs jsonb[] default '{}') returns jsonb
language sql immutable
as $$
    select jsonb_build_object('meta', tap.meta('FLOP', p_styp), 'flights', to_jsonb(p_recs))
$$;

create function tap.fdel(variadic p_flids text[] default '{}') returns jsonb
language sql immutable
as $$
    select jsonb_build_object('meta', tap.meta('FLOP', 'FDEL'),
        'flights', (select coalesce(jsonb_agg(tap.rec(f.flid) order by f.ord), '[]')
            from unnest(p_flids) with ordinality as f (flid, ord)))
$$;

create function tap.schd(p_styp text, p_fday text, variadic p_recs jsonb[] default '{}') returns jsonb
language sql immutable
as $$
    select jsonb_build_object(
        'meta', tap.meta('SCHD', p_styp),
        'schedule', jsonb_build_object('RECS', cardinality(p_recs)::text)
                    || case when p_fday is null then '{}' else jsonb_build_object('FDAY', p_fday) end,
        'flights', to_jsonb(p_recs))
$$;

create function tap.dnld(p_fday text, variadic p_recs jsonb[] default '{}') returns jsonb
language sql immutable
as $$
    select tap.schd('DNLD', p_fday, variadic p_recs)
$$;

create function tap.adft(variadic p_recs jsonb[] default '{}') returns jsonb
language sql immutable
as $$
    select tap.schd('ADFT', null, variadic p_recs)
$$;

-- A plan of flights that carry nothing but their FLID.
create function tap.plan_of(p_fday text, variadic p_flids text[] default '{}') returns jsonb
language sql immutable
as $$
    select tap.dnld(p_fday, variadic (select coalesce(array_agg(tap.rec(f.flid, '{"MVIN":"D"}') order by f.ord), '{}')
                                        from unnest(p_flids) with ordinality as f (flid, ord)))
$$;

create function tap.with_meta(p_command jsonb, p_meta jsonb) returns jsonb
language sql immutable
as $$
    select jsonb_set(p_command, '{meta}', (p_command -> 'meta') || p_meta)
$$;
