-- Length of a lease, and notices that an operator sends again. Forward only; the shape is repeated in sql/schema.

alter table delivery_target add column lease_seconds integer;
comment on column delivery_target.lease_seconds is 'length of the lease; tells a long lease from a clock that went back';

alter table msg_event add column redelivered boolean not null default false;
comment on column msg_event.redelivered is 'an operator sends a DEAD notice again; its place in the order is lost (D39)';
