-- The mailbox tables as the site has them, for a trial. msgx itself creates and alters nothing there.
create table if not exists CMINMSGS (
    CMINMSGS_ID             bigint not null auto_increment,
    CMINMSGS_CLOB_MSG       mediumtext,
    CMINMSGS_DATE_RECEIVED  datetime not null default current_timestamp,
    CMINMSGS_DATE_PROCESSED datetime null,
    CMINMSGS_STATUS         varchar(20) null,
    primary key (CMINMSGS_ID)
) engine = InnoDB default charset = utf8mb4;

create table if not exists COUTMSGS (
    COUTMSGS_ID            bigint not null auto_increment,
    COUTMSGS_CLOB_MSG      mediumtext,
    COUTMSGS_DATE_INSERTED datetime not null default current_timestamp,
    COUTMSGS_ROUTINGID     varchar(20) not null,
    primary key (COUTMSGS_ID)
) engine = InnoDB default charset = utf8mb4;
