-- ================================================================================================
-- _write_flights
-- Purpose   : Write a set of flights; a dynamic message is a set of one, a plan a set of many.
-- Params    : p_message_id: writing message
--             p_changes: from _stage_changes, each FLID once
--             p_dttm: full DTTM of the message, or null
--             p_now: clock
-- Returns   : nothing
-- Errors    : MX105 overtaken; 22001 when a width check was left out before
-- Locks     : none
-- Reads     : flight_schd
-- Writes    : flight_schd and the nine detail tables
-- Called by : _apply_snapshot, _apply_adft, _apply_flop, _update_mains
-- Sources   : FS-5.4, FS-6, D22, architecture invariant 5
-- Oracle    : msgx_state.write_flights
-- ================================================================================================
create or replace function _write_flights(p_message_id bigint, p_changes flight_change[], p_dttm text, p_now timestamptz) returns void
language plpgsql volatile
as $$
declare
    v_tags text[];
begin
    perform _check_overtaken(p_message_id, array(select c.flid from unnest(p_changes) c), null);
    select array_agg(distinct t.tag) into v_tags from unnest(p_changes) c cross join lateral jsonb_object_keys(c.sets) as t (tag);

    insert into flight_schd (flid, state_version, last_message_id, high_message_id, created_at, updated_at)
    select c.flid, c.state_version, p_message_id, p_message_id, p_now, p_now
      from unnest(p_changes) c where c.is_new;

    update flight_schd f
       set
           alcd            = case when c.vals ? 'ALCD' then c.vals ->> 'ALCD' else f.alcd end,
           alsc            = case when c.vals ? 'ALSC' then c.vals ->> 'ALSC' else f.alsc end,
           flno            = case when c.vals ? 'FLNO' then c.vals ->> 'FLNO' else f.flno end,
           mvin            = case when c.vals ? 'MVIN' then c.vals ->> 'MVIN' else f.mvin end,
           sodt            = case when c.vals ? 'SODT' then c.vals ->> 'SODT' else f.sodt end,
           std             = case when c.vals ? 'STD' then c.vals ->> 'STD' else f.std end,
           flty            = case when c.vals ? 'FLTY' then c.vals ->> 'FLTY' else f.flty end,
           flin            = case when c.vals ? 'FLIN' then c.vals ->> 'FLIN' else f.flin end,
           acft            = case when c.vals ? 'ACFT' then c.vals ->> 'ACFT' else f.acft end,
           reno            = case when c.vals ? 'RENO' then c.vals ->> 'RENO' else f.reno end,
           taop            = case when c.vals ? 'TAOP' then c.vals ->> 'TAOP' else f.taop end,
           tafl            = case when c.vals ? 'TAFL' then c.vals ->> 'TAFL' else f.tafl end,
           taid            = case when c.vals ? 'TAID' then c.vals ->> 'TAID' else f.taid end,
           trml            = case when c.vals ? 'TRML' then c.vals ->> 'TRML' else f.trml end,
           maxp            = case when c.vals ? 'MAXP' then c.vals ->> 'MAXP' else f.maxp end,
           csop            = case when c.vals ? 'CSOP' then c.vals ->> 'CSOP' else f.csop end,
           csft            = case when c.vals ? 'CSFT' then c.vals ->> 'CSFT' else f.csft end,
           maid            = case when c.vals ? 'MAID' then c.vals ->> 'MAID' else f.maid end,
           estt            = case when c.vals ? 'ESTT' then c.vals ->> 'ESTT' else f.estt end,
           actt            = case when c.vals ? 'ACTT' then c.vals ->> 'ACTT' else f.actt end,
           stnd            = case when c.vals ? 'STND' then c.vals ->> 'STND' else f.stnd end,
           abdg            = case when c.vals ? 'ABDG' then c.vals ->> 'ABDG' else f.abdg end,
           phag            = case when c.vals ? 'PHAG' then c.vals ->> 'PHAG' else f.phag end,
           fhag            = case when c.vals ? 'FHAG' then c.vals ->> 'FHAG' else f.fhag end,
           mhag            = case when c.vals ? 'MHAG' then c.vals ->> 'MHAG' else f.mhag end,
           cncl            = case when c.vals ? 'CNCL' then c.vals ->> 'CNCL' else f.cncl end,
           remc            = case when c.vals ? 'REMC' then c.vals ->> 'REMC' else f.remc end,
           exsc            = case when c.vals ? 'EXSC' then c.vals ->> 'EXSC' else f.exsc end,
           exsr            = case when c.vals ? 'EXSR' then c.vals ->> 'EXSR' else f.exsr end,
           ftss            = case when c.vals ? 'FTSS' then c.vals ->> 'FTSS' else f.ftss end,
           pedt            = case when c.vals ? 'PEDT' then c.vals ->> 'PEDT' else f.pedt end,
           padt            = case when c.vals ? 'PADT' then c.vals ->> 'PADT' else f.padt end,
           neat            = case when c.vals ? 'NEAT' then c.vals ->> 'NEAT' else f.neat end,
           naat            = case when c.vals ? 'NAAT' then c.vals ->> 'NAAT' else f.naat end,
           runw            = case when c.vals ? 'RUNW' then c.vals ->> 'RUNW' else f.runw end,
           eobt            = case when c.vals ? 'EOBT' then c.vals ->> 'EOBT' else f.eobt end,
           tobt            = case when c.vals ? 'TOBT' then c.vals ->> 'TOBT' else f.tobt end,
           cobt            = case when c.vals ? 'COBT' then c.vals ->> 'COBT' else f.cobt end,
           ctot            = case when c.vals ? 'CTOT' then c.vals ->> 'CTOT' else f.ctot end,
           iest            = case when c.vals ? 'IEST' then c.vals ->> 'IEST' else f.iest end,
           vipp            = case when c.vals ? 'VIPP' then c.vals ->> 'VIPP' else f.vipp end,
           vipr            = case when c.vals ? 'VIPR' then c.vals ->> 'VIPR' else f.vipr end,
           lbno            = case when c.vals ? 'LBNO' then c.vals ->> 'LBNO' else f.lbno end,
           lbwt            = case when c.vals ? 'LBWT' then c.vals ->> 'LBWT' else f.lbwt end,
           paxc            = case when c.vals ? 'PAXC' then c.vals ->> 'PAXC' else f.paxc end,
           egsr            = case when c.vals ? 'EGSR' then c.vals ->> 'EGSR' else f.egsr end,
           egst            = case when c.vals ? 'EGST' then c.vals ->> 'EGST' else f.egst end,
           fdiv_ddes       = case when c.vals ? 'FDIV' then c.vals -> 'FDIV' ->> 'DDES' else f.fdiv_ddes end,
           fdiv_ddir       = case when c.vals ? 'FDIV' then c.vals -> 'FDIV' ->> 'DDIR' else f.fdiv_ddir end,
           fdiv_text       = case when c.vals ? 'FDIV' then c.vals -> 'FDIV' ->> 'TEXT' else f.fdiv_text end,
           fret_reid       = case when c.vals ? 'FRET' then c.vals -> 'FRET' ->> 'REID' else f.fret_reid end,
           fret_text       = case when c.vals ? 'FRET' then c.vals -> 'FRET' ->> 'TEXT' else f.fret_text end,
           flab_ares       = case when c.vals ? 'FLAB' then c.vals -> 'FLAB' ->> 'ARES' else f.flab_ares end,
           flab_text       = case when c.vals ? 'FLAB' then c.vals -> 'FLAB' ->> 'TEXT' else f.flab_text end,
           srvt_text       = case when c.vals ? 'SRVT' then c.vals ->> 'SRVT' else f.srvt_text end,
           vipf_text       = case when c.vals ? 'VIPF' then c.vals ->> 'VIPF' else f.vipf_text end,
           mafl_text       = case when c.vals ? 'MAFL' then c.vals ->> 'MAFL' else f.mafl_text end,
           fday            = coalesce(c.fday, f.fday),
           state_version   = c.state_version,
           last_message_id = p_message_id,
           high_message_id = greatest(f.high_message_id, p_message_id),
           last_dttm       = p_dttm,
           updated_at      = p_now
      from unnest(p_changes) c
     where f.flid = c.flid;

    -- Sets the message does not carry are rewritten with the new version (FS-5.4-5).
    with c as materialized (
        select u.flid, u.state_version, u.sets from unnest(p_changes) u where not u.is_new
    ), gate as (
        update flight_gate d set record_version = c.state_version, created_at = p_now, updated_at = p_now
          from c where d.flid = c.flid and not c.sets ? 'GTDT'
    ), checkin as (
        update flight_checkin d set record_version = c.state_version, created_at = p_now, updated_at = p_now
          from c where d.flid = c.flid and not c.sets ? 'CKDT'
    ), belt as (
        update flight_belt d set record_version = c.state_version, created_at = p_now, updated_at = p_now
          from c where d.flid = c.flid and not c.sets ? 'CLDT'
    ), stand_plan as (
        update flight_stand_plan d set record_version = c.state_version, created_at = p_now, updated_at = p_now
          from c where d.flid = c.flid and not c.sets ? 'PSDT'
    ), chute as (
        update flight_chute d set record_version = c.state_version, created_at = p_now, updated_at = p_now
          from c where d.flid = c.flid and not c.sets ? 'CHDT'
    ), delay as (
        update flight_delay d set record_version = c.state_version, created_at = p_now, updated_at = p_now
          from c where d.flid = c.flid and not c.sets ? 'DELY'
    ), bridge_op as (
        update flight_bridge_op d set record_version = c.state_version, created_at = p_now, updated_at = p_now
          from c where d.flid = c.flid and not c.sets ? 'ABTM'
    ), chock_op as (
        update flight_chock_op d set record_version = c.state_version, created_at = p_now, updated_at = p_now
          from c where d.flid = c.flid and not c.sets ? 'CHOT'
    )
    update flight_route_point d set record_version = c.state_version, created_at = p_now, updated_at = p_now
      from c where d.flid = c.flid and not c.sets ? d.route_kind;

    if 'GTDT' = any (v_tags) then
        delete from flight_gate d using unnest(p_changes) c where d.flid = c.flid and c.sets ? 'GTDT';
        insert into flight_gate (flid, ordinal, source_seq, gate, gtyp, pgot, pgct, gotm, gctm, record_version, created_at, updated_at)
        select c.flid, i.ordinal, i.seq, i.gate, i.gtyp, i.pgot, i.pgct, i.gotm, i.gctm, c.state_version, p_now, p_now
          from unnest(p_changes) c
         cross join lateral rows from (jsonb_to_recordset(c.sets -> 'GTDT') as ("GTNO" text, "GATE" text, "GTYP" text, "PGOT" text, "PGCT" text, "GOTM" text, "GCTM" text))
               with ordinality as i (seq, gate, gtyp, pgot, pgct, gotm, gctm, ordinal);
    end if;
    if 'CKDT' = any (v_tags) then
        delete from flight_checkin d using unnest(p_changes) c where d.flid = c.flid and c.sets ? 'CKDT';
        insert into flight_checkin (flid, ordinal, source_seq, chkc, ccls, ctyp, pcot, pcct, cotm, cctm, record_version, created_at, updated_at)
        select c.flid, i.ordinal, i.seq, i.chkc, i.ccls, i.ctyp, i.pcot, i.pcct, i.cotm, i.cctm, c.state_version, p_now, p_now
          from unnest(p_changes) c
         cross join lateral rows from (jsonb_to_recordset(c.sets -> 'CKDT') as ("CKNO" text, "CHKC" text, "CCLS" text, "CTYP" text, "PCOT" text, "PCCT" text, "COTM" text, "CCTM" text))
               with ordinality as i (seq, chkc, ccls, ctyp, pcot, pcct, cotm, cctm, ordinal);
    end if;
    if 'CLDT' = any (v_tags) then
        delete from flight_belt d using unnest(p_changes) c where d.flid = c.flid and c.sets ? 'CLDT';
        insert into flight_belt (flid, ordinal, source_seq, belt, bcls, btyp, pcot, pcct, fbag, lbag, record_version, created_at, updated_at)
        select c.flid, i.ordinal, i.seq, i.belt, i.bcls, i.btyp, i.pcot, i.pcct, i.fbag, i.lbag, c.state_version, p_now, p_now
          from unnest(p_changes) c
         cross join lateral rows from (jsonb_to_recordset(c.sets -> 'CLDT') as ("CLNO" text, "BELT" text, "BCLS" text, "BTYP" text, "PCOT" text, "PCCT" text, "FBAG" text, "LBAG" text))
               with ordinality as i (seq, belt, bcls, btyp, pcot, pcct, fbag, lbag, ordinal);
    end if;
    if 'PSDT' = any (v_tags) then
        delete from flight_stand_plan d using unnest(p_changes) c where d.flid = c.flid and c.sets ? 'PSDT';
        insert into flight_stand_plan (flid, ordinal, source_seq, psst, stst, stet, abdg, record_version, created_at, updated_at)
        select c.flid, i.ordinal, i.seq, i.psst, i.stst, i.stet, i.abdg, c.state_version, p_now, p_now
          from unnest(p_changes) c
         cross join lateral rows from (jsonb_to_recordset(c.sets -> 'PSDT') as ("PSNO" text, "PSST" text, "STST" text, "STET" text, "ABDG" text))
               with ordinality as i (seq, psst, stst, stet, abdg, ordinal);
    end if;
    if 'CHDT' = any (v_tags) then
        delete from flight_chute d using unnest(p_changes) c where d.flid = c.flid and c.sets ? 'CHDT';
        insert into flight_chute (flid, ordinal, source_seq, chut, ccls, ctyp, pcbt, pcet, cbtm, cetm, record_version, created_at, updated_at)
        select c.flid, i.ordinal, i.seq, i.chut, i.ccls, i.ctyp, i.pcbt, i.pcet, i.cbtm, i.cetm, c.state_version, p_now, p_now
          from unnest(p_changes) c
         cross join lateral rows from (jsonb_to_recordset(c.sets -> 'CHDT') as ("CHNO" text, "CHUT" text, "CCLS" text, "CTYP" text, "PCBT" text, "PCET" text, "CBTM" text, "CETM" text))
               with ordinality as i (seq, chut, ccls, ctyp, pcbt, pcet, cbtm, cetm, ordinal);
    end if;
    if 'DELY' = any (v_tags) then
        delete from flight_delay d using unnest(p_changes) c where d.flid = c.flid and c.sets ? 'DELY';
        insert into flight_delay (flid, ordinal, source_seq, code, strt, dura, text, record_version, created_at, updated_at)
        select c.flid, i.ordinal, null, i.code, i.strt, i.dura, i.text, c.state_version, p_now, p_now
          from unnest(p_changes) c
         cross join lateral rows from (jsonb_to_recordset(c.sets -> 'DELY') as ("CODE" text, "STRT" text, "DURA" text, "TEXT" text))
               with ordinality as i (code, strt, dura, text, ordinal);
    end if;
    if 'ABTM' = any (v_tags) then
        delete from flight_bridge_op d using unnest(p_changes) c where d.flid = c.flid and c.sets ? 'ABTM';
        insert into flight_bridge_op (flid, ordinal, source_seq, abdg, abop, aotm, record_version, created_at, updated_at)
        select c.flid, i.ordinal, i.seq, i.abdg, i.abop, i.aotm, c.state_version, p_now, p_now
          from unnest(p_changes) c
         cross join lateral rows from (jsonb_to_recordset(c.sets -> 'ABTM') as ("ASNO" text, "ABDG" text, "ABOP" text, "AOTM" text))
               with ordinality as i (seq, abdg, abop, aotm, ordinal);
    end if;
    if 'CHOT' = any (v_tags) then
        delete from flight_chock_op d using unnest(p_changes) c where d.flid = c.flid and c.sets ? 'CHOT';
        insert into flight_chock_op (flid, ordinal, source_seq, chid, chtm, chst, record_version, created_at, updated_at)
        select c.flid, i.ordinal, i.seq, i.chid, i.chtm, i.chst, c.state_version, p_now, p_now
          from unnest(p_changes) c
         cross join lateral rows from (jsonb_to_recordset(c.sets -> 'CHOT') as ("CSNO" text, "CHID" text, "CHTM" text, "CHST" text))
               with ordinality as i (seq, chid, chtm, chst, ordinal);
    end if;
    if 'ROUT' = any (v_tags) then
        delete from flight_route_point d using unnest(p_changes) c where d.flid = c.flid and c.sets ? 'ROUT' and d.route_kind = 'ROUT';
        insert into flight_route_point (flid, route_kind, ordinal, source_seq, apcd, scat, scdt, sadc, sddc, record_version, created_at, updated_at)
        select c.flid, 'ROUT', i.ordinal, i.seq, i.apcd, i.scat, i.scdt, i.sadc, i.sddc, c.state_version, p_now, p_now
          from unnest(p_changes) c
         cross join lateral rows from (jsonb_to_recordset(c.sets -> 'ROUT') as ("RTNO" text, "APCD" text, "SCAT" text, "SCDT" text, "SADC" text, "SDDC" text))
               with ordinality as i (seq, apcd, scat, scdt, sadc, sddc, ordinal);
    end if;
    if 'ERUT' = any (v_tags) then
        delete from flight_route_point d using unnest(p_changes) c where d.flid = c.flid and c.sets ? 'ERUT' and d.route_kind = 'ERUT';
        insert into flight_route_point (flid, route_kind, ordinal, source_seq, apcd, scat, scdt, sadc, sddc, record_version, created_at, updated_at)
        select c.flid, 'ERUT', i.ordinal, i.seq, i.apcd, i.scat, i.scdt, i.sadc, i.sddc, c.state_version, p_now, p_now
          from unnest(p_changes) c
         cross join lateral rows from (jsonb_to_recordset(c.sets -> 'ERUT') as ("RTNO" text, "APCD" text, "SCAT" text, "SCDT" text, "SADC" text, "SDDC" text))
               with ordinality as i (seq, apcd, scat, scdt, sadc, sddc, ordinal);
    end if;
end;
$$;

comment on function _write_flights(bigint, flight_change[], text, timestamptz) is 'The one routine that writes flights: merged state of main row and nine detail tables (FS-5.4).';
revoke all on function _write_flights(bigint, flight_change[], text, timestamptz) from public;
