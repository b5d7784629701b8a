-- ================================================================================================
-- flight_projection
-- Purpose   : The one routine that reads whole flights. Absent key = no data: consumers replace, never patch.
-- Params    : p_flids: flights, null = all
-- Returns   : one JSON object per flight that exists, in code-point order of FLID; empty text is left out
-- Errors    : none
-- Locks     : none
-- Reads     : flight_schd and the nine detail tables
-- Writes    : none
-- Called by : driver (flights), preview_events, claim_events, _stage_changes, _apply_adft
-- Sources   : FS-5.5, FS-6.2-2, FS-9, D11, D28
-- Oracle    : msgx_state.flight_projection
-- ================================================================================================
create or replace function flight_projection(p_flids text[]) returns setof jsonb
language plpgsql stable security definer
set jit = off
as $$
declare
    v_flids text[] := coalesce(p_flids, (select array_agg(a.flid) from flight_schd a));
begin
    return query
    select jsonb_strip_nulls(
               jsonb_build_object(
                'ALCD', nullif(f.alcd, ''), 'ALSC', nullif(f.alsc, ''), 'FLNO', nullif(f.flno, ''), 'MVIN', nullif(f.mvin, ''),
                'SODT', nullif(f.sodt, ''), 'STD', nullif(f.std, ''), 'FLTY', nullif(f.flty, ''), 'FLIN', nullif(f.flin, ''),
                'ACFT', nullif(f.acft, ''), 'RENO', nullif(f.reno, ''), 'TAOP', nullif(f.taop, ''), 'TAFL', nullif(f.tafl, ''),
                'TAID', nullif(f.taid, ''), 'TRML', nullif(f.trml, ''), 'MAXP', nullif(f.maxp, ''), 'CSOP', nullif(f.csop, ''),
                'CSFT', nullif(f.csft, ''), 'MAID', nullif(f.maid, ''), 'ESTT', nullif(f.estt, ''), 'ACTT', nullif(f.actt, ''),
                'STND', nullif(f.stnd, ''), 'ABDG', nullif(f.abdg, ''), 'PHAG', nullif(f.phag, ''), 'FHAG', nullif(f.fhag, ''),
                'MHAG', nullif(f.mhag, ''), 'CNCL', nullif(f.cncl, ''), 'REMC', nullif(f.remc, ''), 'EXSC', nullif(f.exsc, ''))
            || jsonb_build_object(
                'EXSR', nullif(f.exsr, ''), 'FTSS', nullif(f.ftss, ''), 'PEDT', nullif(f.pedt, ''), 'PADT', nullif(f.padt, ''),
                'NEAT', nullif(f.neat, ''), 'NAAT', nullif(f.naat, ''), 'RUNW', nullif(f.runw, ''), 'EOBT', nullif(f.eobt, ''),
                'TOBT', nullif(f.tobt, ''), 'COBT', nullif(f.cobt, ''), 'CTOT', nullif(f.ctot, ''), 'IEST', nullif(f.iest, ''),
                'VIPP', nullif(f.vipp, ''), 'VIPR', nullif(f.vipr, ''), 'LBNO', nullif(f.lbno, ''), 'LBWT', nullif(f.lbwt, ''),
                'PAXC', nullif(f.paxc, ''), 'EGSR', nullif(f.egsr, ''), 'EGST', nullif(f.egst, ''),
                'FLID', f.flid, 'FDAY', to_char(f.fday, 'YYYY-MM-DD'), 'STATE_VERSION', f.state_version,
                'LAST_MESSAGE_ID', f.last_message_id,
                'UPDATED_AT', to_char(f.updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))
            || jsonb_build_object(
                'SRVT', case when f.srvt_text like '[{%' then f.srvt_text::jsonb else to_jsonb(nullif(f.srvt_text, '')) end,
                'VIPF', case when f.vipf_text like '[{%' then f.vipf_text::jsonb else to_jsonb(nullif(f.vipf_text, '')) end,
                'MAFL', case when f.mafl_text like '[{%' then f.mafl_text::jsonb else to_jsonb(nullif(f.mafl_text, '')) end,
                'FDIV', nullif(jsonb_strip_nulls(jsonb_build_object('DDES', nullif(f.fdiv_ddes, ''), 'DDIR', nullif(f.fdiv_ddir, ''), 'TEXT', nullif(f.fdiv_text, ''))), '{}'),
                'FRET', nullif(jsonb_strip_nulls(jsonb_build_object('REID', nullif(f.fret_reid, ''), 'TEXT', nullif(f.fret_text, ''))), '{}'),
                'FLAB', nullif(jsonb_strip_nulls(jsonb_build_object('ARES', nullif(f.flab_ares, ''), 'TEXT', nullif(f.flab_text, ''))), '{}'),
                'GTDT', (select jsonb_agg(jsonb_build_object(
                    'GTNO', nullif(d.source_seq, ''), 'GATE', nullif(d.gate, ''), 'GTYP', nullif(d.gtyp, ''), 'PGOT', nullif(d.pgot, ''),
                    'PGCT', nullif(d.pgct, ''), 'GOTM', nullif(d.gotm, ''), 'GCTM', nullif(d.gctm, '')) order by d.ordinal)
                    from flight_gate d where d.flid = f.flid),
                'CKDT', (select jsonb_agg(jsonb_build_object(
                    'CKNO', nullif(d.source_seq, ''), 'CHKC', nullif(d.chkc, ''), 'CCLS', nullif(d.ccls, ''), 'CTYP', nullif(d.ctyp, ''),
                    'PCOT', nullif(d.pcot, ''), 'PCCT', nullif(d.pcct, ''), 'COTM', nullif(d.cotm, ''), 'CCTM', nullif(d.cctm, '')) order by d.ordinal)
                    from flight_checkin d where d.flid = f.flid),
                'CLDT', (select jsonb_agg(jsonb_build_object(
                    'CLNO', nullif(d.source_seq, ''), 'BELT', nullif(d.belt, ''), 'BCLS', nullif(d.bcls, ''), 'BTYP', nullif(d.btyp, ''),
                    'PCOT', nullif(d.pcot, ''), 'PCCT', nullif(d.pcct, ''), 'FBAG', nullif(d.fbag, ''), 'LBAG', nullif(d.lbag, '')) order by d.ordinal)
                    from flight_belt d where d.flid = f.flid),
                'PSDT', (select jsonb_agg(jsonb_build_object(
                    'PSNO', nullif(d.source_seq, ''), 'PSST', nullif(d.psst, ''), 'STST', nullif(d.stst, ''), 'STET', nullif(d.stet, ''),
                    'ABDG', nullif(d.abdg, '')) order by d.ordinal)
                    from flight_stand_plan d where d.flid = f.flid),
                'CHDT', (select jsonb_agg(jsonb_build_object(
                    'CHNO', nullif(d.source_seq, ''), 'CHUT', nullif(d.chut, ''), 'CCLS', nullif(d.ccls, ''), 'CTYP', nullif(d.ctyp, ''),
                    'PCBT', nullif(d.pcbt, ''), 'PCET', nullif(d.pcet, ''), 'CBTM', nullif(d.cbtm, ''), 'CETM', nullif(d.cetm, '')) order by d.ordinal)
                    from flight_chute d where d.flid = f.flid),
                'DELY', (select jsonb_agg(jsonb_build_object(
                    'CODE', nullif(d.code, ''), 'STRT', nullif(d.strt, ''), 'DURA', nullif(d.dura, ''), 'TEXT', nullif(d.text, '')) order by d.ordinal)
                    from flight_delay d where d.flid = f.flid),
                'ABTM', (select jsonb_agg(jsonb_build_object(
                    'ASNO', nullif(d.source_seq, ''), 'ABDG', nullif(d.abdg, ''), 'ABOP', nullif(d.abop, ''), 'AOTM', nullif(d.aotm, '')) order by d.ordinal)
                    from flight_bridge_op d where d.flid = f.flid),
                'CHOT', (select jsonb_agg(jsonb_build_object(
                    'CSNO', nullif(d.source_seq, ''), 'CHID', nullif(d.chid, ''), 'CHTM', nullif(d.chtm, ''), 'CHST', nullif(d.chst, '')) order by d.ordinal)
                    from flight_chock_op d where d.flid = f.flid),
                'ROUT', (select jsonb_agg(jsonb_build_object(
                    'RTNO', nullif(d.source_seq, ''), 'APCD', nullif(d.apcd, ''), 'SCAT', nullif(d.scat, ''), 'SCDT', nullif(d.scdt, ''),
                    'SADC', nullif(d.sadc, ''), 'SDDC', nullif(d.sddc, '')) order by d.ordinal)
                    from flight_route_point d where d.flid = f.flid and d.route_kind = 'ROUT'),
                'ERUT', (select jsonb_agg(jsonb_build_object(
                    'RTNO', nullif(d.source_seq, ''), 'APCD', nullif(d.apcd, ''), 'SCAT', nullif(d.scat, ''), 'SCDT', nullif(d.scdt, ''),
                    'SADC', nullif(d.sadc, ''), 'SDDC', nullif(d.sddc, '')) order by d.ordinal)
                    from flight_route_point d where d.flid = f.flid and d.route_kind = 'ERUT')))
      from flight_schd f
     where f.flid = any (v_flids)
     order by f.flid collate "C";
end;
$$;

comment on function flight_projection(text[]) is 'Whole state of flights as it goes to Kafka (FS-5.5, FS-6.2, contract 5).';
revoke all on function flight_projection(text[]) from public;
grant execute on function flight_projection(text[]) to :"driver";
grant execute on function flight_projection(text[]) to :"operator";
grant execute on function flight_projection(text[]) to :"report";
