"""A real MariaDB for tests: own port, own folder, tables as the site has them, accounts with and without PROCESS."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import unquote, urlsplit

import pymysql

from msgx_driver.clock import SystemClock, wait_until
from msgx_driver.config import Mailbox as MailboxConfig
from tests.services.process import OwnProcess

__all__ = ["MariaDbServer", "missing_mariadb"]

PROGRAMS: Final = ("mariadbd", "mariadb-install-db")
FOLDERS: Final = "/usr/sbin:/usr/local/sbin:/usr/libexec"
TABLES: Final = Path(__file__).resolve().parents[3] / "deploy" / "mailbox.sql"
START_SECONDS: Final = 60.0


def _program(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + os.pathsep + FOLDERS)


def missing_mariadb() -> list[str]:
    """Names of the programs that a local server needs and this machine lacks."""
    return [name for name in PROGRAMS if _program(name) is None]


class MariaDbServer(OwnProcess):
    """The server of a `mysql://admin:password@host:port` URL, or, without it, one of its own in a temporary folder.

    `user` has the right PROCESS, `plain_user` has not; both read the tables and mark CMINMSGS.
    """

    def __init__(self, url: str | None = None) -> None:
        self.local = url is None
        run = uuid.uuid4().hex[:8]
        self.database = f"msgx_test_{run}"
        self.user = f"msgx_{run}"
        self.plain_user = f"msgx_plain_{run}"
        self.password = secrets.token_hex(12)
        if url is not None:
            parts = urlsplit(url)
            self.host, self.port = parts.hostname or "127.0.0.1", parts.port or 3306
            self._admin = (unquote(parts.username or "root"), unquote(parts.password or ""))
            return
        self._admin = ("root", "")
        self.host = "127.0.0.1"
        with socket.create_server((self.host, 0)) as free:
            self.port = int(free.getsockname()[1])
        self.home = Path(tempfile.mkdtemp(prefix="msgx-mariadb-"))
        # The server does not run as root.
        self._account = pwd.getpwnam("mysql") if os.getuid() == 0 else None
        if self._account is not None:
            os.chown(self.home, self._account.pw_uid, self._account.pw_gid)
        done = subprocess.run(
            [
                str(_program("mariadb-install-db")),
                "--no-defaults",
                *self._as_user(),
                f"--datadir={self.home / 'data'}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
            check=False,
            cwd="/",
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _as_user(self) -> list[str]:
        return [] if self._account is None else [f"--user={self._account.pw_name}"]

    def __enter__(self) -> Self:
        if self.local:
            self.start()
        with self.connect_admin() as conn, conn.cursor() as cursor:
            cursor.execute(f"create database {self.database} character set utf8mb4")
            for user in (self.user, self.plain_user):
                cursor.execute(f"create user {user}@'%%' identified by %s", (self.password,))
                cursor.execute(f"grant select, update on {self.database}.* to {user}@'%'")
            cursor.execute(f"grant process on *.* to {self.user}@'%'")
        self.reset()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        if self.local:
            if self._process is not None:
                self.kill()
            shutil.rmtree(self.home, ignore_errors=True)
            return
        with self.connect_admin() as conn, conn.cursor() as cursor:
            cursor.execute(f"drop database {self.database}")
            cursor.execute(f"drop user {self.user}@'%', {self.plain_user}@'%'")

    def start(self) -> None:
        """Start the server on its port and wait until it answers; what it held before is there again."""
        assert self.local
        assert self._process is None
        with (self.home / "out.log").open("ab") as out:
            self._process = subprocess.Popen(
                [
                    str(_program("mariadbd")),
                    "--no-defaults",
                    *self._as_user(),
                    f"--datadir={self.home / 'data'}",
                    f"--socket={self.home / 's'}",
                    f"--port={self.port}",
                    f"--bind-address={self.host}",
                    f"--pid-file={self.home / 'pid'}",
                    "--skip-name-resolve",
                    "--innodb-buffer-pool-size=64M",
                    "--performance-schema=OFF",
                ],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd="/",
                start_new_session=True,
            )
        wait_until(self._answers, timeout=START_SECONDS, clock=SystemClock(), what="MariaDB to start")

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError("MariaDB ended:\n" + (self.home / "out.log").read_text("utf-8", "replace")[-4000:])
        try:
            self.connect_admin().close()
        except pymysql.err.OperationalError:
            return False
        return True

    def connect_admin(self, **options: Any) -> pymysql.connections.Connection[Any]:
        """A connection of the administrator, in autocommit; `with` closes it."""
        user, password = self._admin
        return pymysql.connect(
            host=self.host,
            port=self.port,
            user=user,
            password=password,
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=10,
            read_timeout=60,
            **options,
        )

    def connect(self) -> pymysql.connections.Connection[Any]:
        """The sender's connection: writes the tables, in autocommit; `with` closes it."""
        return self.connect_admin(database=self.database)

    def execute(self, statement: str, *values: Any) -> None:
        """One statement of the sender."""
        with self.connect() as conn, conn.cursor() as cursor:
            cursor.execute(statement, values)

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows of a query, read independently of the product."""
        with self.connect() as conn, conn.cursor() as cursor:
            cursor.execute(query, values)
            return list(cursor.fetchall())

    def reset(self, *, binary: bool = False) -> None:
        """Empty tables with ids from 1; `binary`: the body is a BLOB."""
        text = "\n".join(line for line in TABLES.read_text("utf-8").splitlines() if not line.startswith("--"))
        with self.connect() as conn, conn.cursor() as cursor:
            cursor.execute("drop table if exists CMINMSGS, COUTMSGS")
            for statement in filter(str.strip, text.split(";")):
                cursor.execute(statement.replace("mediumtext", "longblob") if binary else statement)

    def config(self, **keys: Any) -> MailboxConfig:
        """Section mailbox for this server; reading starts at 1."""
        values: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "database": self.database,
            "start_at": 1,
        }
        return MailboxConfig(**values | keys)
