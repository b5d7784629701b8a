-- Flight board: first two gates and counters, first belt and delay, counts (FS-3.2-7). Projection only, never a source of state.
drop view if exists flight_schd_display;

create view flight_schd_display as
select f.flid, nullif(f.alcd, '') as alcd, nullif(f.flno, '') as flno, nullif(f.mvin, '') as mvin, nullif(f.maid, '') as maid, f.fday,
       nullif(f.std, '') as std, nullif(f.sodt, '') as sodt, nullif(f.estt, '') as estt, nullif(f.actt, '') as actt, nullif(f.stnd, '') as stnd,
       nullif(g1.gate, '') as gate1, nullif(g2.gate, '') as gate2, coalesce(gn.n, 0) as gates,
       nullif(c1.chkc, '') as counter1, nullif(c2.chkc, '') as counter2, coalesce(cn.n, 0) as counters,
       nullif(b1.belt, '') as belt1, coalesce(bn.n, 0) as belts,
       nullif(d1.code, '') as delay_code1, nullif(d1.dura, '') as delay_dura1, coalesce(dn.n, 0) as delays,
       nullif(f.cncl, '') as cncl, nullif(f.remc, '') as remc, f.state_version, f.last_message_id, f.updated_at
  from flight_schd f
  left join flight_gate g1 on g1.flid = f.flid and g1.ordinal = 1
  left join flight_gate g2 on g2.flid = f.flid and g2.ordinal = 2
  left join flight_checkin c1 on c1.flid = f.flid and c1.ordinal = 1
  left join flight_checkin c2 on c2.flid = f.flid and c2.ordinal = 2
  left join flight_belt b1 on b1.flid = f.flid and b1.ordinal = 1
  left join flight_delay d1 on d1.flid = f.flid and d1.ordinal = 1
  left join lateral (select count(*) as n from flight_gate x where x.flid = f.flid) gn on true
  left join lateral (select count(*) as n from flight_checkin x where x.flid = f.flid) cn on true
  left join lateral (select count(*) as n from flight_belt x where x.flid = f.flid) bn on true
  left join lateral (select count(*) as n from flight_delay x where x.flid = f.flid) dn on true;

comment on view flight_schd_display is 'Flight board for operators (FS-3.2-7); a projection, not a source of state.';
