-- The account of the driver at the mailbox of the trial: what docs/operations.md asks a site for, and nothing more.
create user msgx@'%' identified by 'trial';
grant select, update (CMINMSGS_DATE_PROCESSED, CMINMSGS_STATUS) on sis.CMINMSGS to msgx@'%';
grant process on *.* to msgx@'%';
