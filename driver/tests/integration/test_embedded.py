"""The embedded server, on real processes; as root and as an ordinary user the same tests run."""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from msgx_driver import embedded
from msgx_driver.clock import SystemClock, wait_until
from msgx_driver.embedded import PostgresServer, default_home, embedded_server
from msgx_driver.errors import ExitCode, MsgxError

ROOT = os.geteuid() == 0
CLOCK = SystemClock()


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder everybody may pass through; what servers below it left is removed."""
    path = Path(tempfile.mkdtemp(prefix="msgx-t-"))
    path.chmod(0o755)
    yield path
    path.chmod(0o755)
    for home in [path, *path.rglob("*")]:
        if home.is_dir() and ((home / "gate").exists() or (home / embedded.POINTER).exists()):
            embedded.remove(home)
    shutil.rmtree(path)


@pytest.fixture
def home(folder: Path) -> Path:
    return folder / "home"


def ask(server: PostgresServer, query: str = "select 1") -> str:
    with psycopg.connect(server.dsn) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row
    return str(row[0])


def write(server: PostgresServer) -> None:
    with psycopg.connect(server.dsn) as connection:
        connection.execute("create table kept as select 42 as answer")


def gone(pid: int) -> bool:
    return not embedded._alive(pid)


def wait_gone(pid: int) -> None:
    wait_until(lambda: gone(pid), timeout=30, clock=CLOCK, what=f"the end of process {pid}")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def command() -> Iterator[Start]:
    """Return `start(home, body)`: a Python process that runs `body` with `server` inside its block.

    It has printed its first line when `start` returns.
    """
    started: list[subprocess.Popen[str]] = []

    def start(home: Path, body: str, *, wait: bool = True) -> subprocess.Popen[str]:
        script = (
            "import select, sys\nfrom pathlib import Path\nfrom msgx_driver.embedded import embedded_server\n"
            "with embedded_server(Path(sys.argv[1])) as server:\n"
            "    print(server.postmaster_pid(), flush=True)\n" + body
        )
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            start_new_session=True,
        )
        started.append(process)
        if wait:
            wait_for_pid(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


PIDS: weakref.WeakKeyDictionary[subprocess.Popen[str], int] = weakref.WeakKeyDictionary()


def wait_for_pid(process: subprocess.Popen[str]) -> int:
    """Return the postmaster's number that the process prints first."""
    if process not in PIDS:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()
        PIDS[process] = int(line)
    return PIDS[process]


def wait_for_initdb(home: Path) -> None:
    folder = home / "postgres-server"
    wait_until(lambda: any(folder.glob("data.new-*/*")), timeout=30, clock=CLOCK, interval=0.001, what="initdb")


# In small steps: a signal that comes just before a blocking read would wait for the end of the read.
UNTIL_STDIN_ENDS = "    while not select.select([sys.stdin], [], [], 0.05)[0]:\n        pass\n"


# -- the plain case


def test_a_server_starts_keeps_its_data_and_stops(home: Path) -> None:
    with embedded_server(home) as server:
        pid = server.postmaster_pid()
        assert pid is not None
        write(server)
        settings = {
            name: ask(server, f"show {name}")
            for name in (
                "listen_addresses", "fsync", "full_page_writes", "server_encoding", "unix_socket_permissions",
                "timezone", "synchronous_commit",
            )
        }  # fmt: skip
        assert settings == {
            "listen_addresses": "", "fsync": "on", "full_page_writes": "on", "server_encoding": "UTF8",
            "unix_socket_permissions": "0700", "timezone": "UTC", "synchronous_commit": "on",
        }  # fmt: skip
        assert server.dsn == f"host={server.folder} port=5432 dbname=postgres user=postgres"
        assert psycopg.conninfo.conninfo_to_dict(server.dsn)["host"] == str(server.folder)
    assert gone(pid)
    assert server.postmaster_pid() is None
    with pytest.raises(RuntimeError):
        _ = server.dsn
    with embedded_server(home) as again:
        assert ask(again, "select answer from kept") == "42"


def test_the_folders_are_private_and_the_server_is_not_root(home: Path) -> None:
    with embedded_server(home) as server:
        pid = server.postmaster_pid()
        for path in (server.folder, server.data):
            assert mode(path) == 0o700, path
            assert path.stat().st_uid != 0
        assert mode(server.folder / embedded.SOCKET_NAME) == 0o700
        assert mode(server.log) == 0o600
        status = Path(f"/proc/{pid}/status").read_text()
        ids = {line.split()[0]: line.split()[1:] for line in status.splitlines() if line[:4] in ("Uid:", "Gid:")}
        assert set(ids["Uid:"]) == {str(server.data.stat().st_uid)}
        assert set(ids["Gid:"]) == {str(server.data.stat().st_gid)}
        groups = next(line for line in status.splitlines() if line.startswith("Groups:")).split()[1:]
        assert "0" not in groups
        assert mode(home) == (0o711 if ROOT else 0o700)


def test_the_server_sees_no_secrets_of_ours(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSGX_DATABASE__DSN", "password=s3cret")
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGDATA", "/nowhere")
    with embedded_server(home) as server:
        assert b"s3cret" not in Path(f"/proc/{server.postmaster_pid()}/environ").read_bytes()
        assert ask(server) == "1"


def test_the_server_has_its_own_session(home: Path) -> None:
    with embedded_server(home) as server:
        pid = server.postmaster_pid()
        assert pid
        assert os.getsid(pid) != os.getsid(0)


def test_starting_and_stopping_twice_is_the_same_as_once(home: Path) -> None:
    server = embedded_server(home)
    server.stop()
    server.start()
    pid = server.postmaster_pid()
    server.start()
    assert server.postmaster_pid() == pid
    server.stop()
    server.stop()
    assert server.postmaster_pid() is None


def test_an_immediate_stop_loses_nothing(home: Path) -> None:
    server = embedded_server(home)
    server.start()
    write(server)
    server.stop(mode="immediate")
    assert server.postmaster_pid() is None
    with server:
        assert ask(server, "select answer from kept") == "42"
    assert "not properly shut down" in server.log.read_text()


def test_open_connections_do_not_delay_the_stop(home: Path) -> None:
    server = embedded_server(home)
    server.start()
    with contextlib.closing(psycopg.connect(server.dsn)) as connection:
        connection.execute("select 1")
        start = time.monotonic()
        server.stop()
        assert time.monotonic() - start < 20
    assert server.postmaster_pid() is None


def test_the_error_of_the_block_goes_through(home: Path) -> None:
    with pytest.raises(ZeroDivisionError), embedded_server(home) as server:
        raise ZeroDivisionError
    assert server.postmaster_pid() is None


# -- where it lives


def test_a_home_below_a_private_folder(folder: Path) -> None:
    private = folder / "private"
    private.mkdir(mode=0o700)
    home = private / "home"
    with embedded_server(home) as server:
        write(server)
        base = server.folder.parent
    if ROOT:
        assert base.parent == Path("/var/lib/msgx")
        assert base.name.startswith("home-")
        assert (home / "server-folder").read_text() == f"{base}\n"
        assert mode(base) == 0o711
        assert base.stat().st_uid == 0
    else:
        assert base == home
    # Once chosen, the place stays, also when the way to it is opened.
    private.chmod(0o755)
    home.chmod(0o755)
    with embedded_server(home) as again:
        assert again.folder.parent == base
        assert ask(again, "select answer from kept") == "42"
    embedded.remove(home)
    assert not base.exists() or not list(base.iterdir())


if ROOT:

    def test_a_home_deleted_by_hand_starts_afresh_and_the_old_data_are_kept_once(folder: Path) -> None:
        folder.chmod(0o700)
        home = folder / "home"
        with embedded_server(home) as server:
            write(server)
        shutil.rmtree(home)
        with embedded_server(home) as again:
            assert again.folder == server.folder
            assert ask(again, "select count(*) from pg_tables where tablename = 'kept'") == "0"
        assert (again.folder.with_name("postgres-server.old") / "data" / "PG_VERSION").is_file()

    def test_a_moved_home_is_refused(folder: Path) -> None:
        folder.chmod(0o700)
        with embedded_server(folder / "one") as server:
            pass
        shutil.copytree(folder / "one", folder / "two")
        with pytest.raises(MsgxError, match="was moved or copied") as e:
            embedded_server(folder / "two").start()
        assert str(server.folder.parent) in str(e.value)
        assert e.value.exit_code is ExitCode.CONFIG
        # Nothing was made for it; without the file it is a new home.
        assert not embedded._system_base(folder / "two").exists()
        (folder / "two" / "server-folder").unlink()
        with embedded_server(folder / "two") as copy:
            assert ask(copy) == "1"
            assert copy.folder != server.folder

    @pytest.mark.parametrize("owner_and_mode", [(65534, 0o755), (0, 0o777)])
    def test_root_keeps_out_of_a_home_that_others_can_change(folder: Path, owner_and_mode: tuple[int, int]) -> None:
        home = folder / "home"
        home.mkdir()
        os.chown(home, owner_and_mode[0], -1)
        home.chmod(owner_and_mode[1])
        with embedded_server(home) as server:
            assert server.folder.parent.parent == Path("/var/lib/msgx")
            assert [path.name for path in home.iterdir()] == ["server-folder"]

    def test_programs_the_servers_user_cannot_execute_are_copied_once(folder: Path) -> None:
        origin = embedded_server(folder / "x")._origin
        package = origin.parent.parent
        private = folder / "private"
        private.mkdir()
        shutil.copytree(package, private / package.name, symlinks=True)
        shutil.copytree(package.with_name(package.name + ".libs"), private / (package.name + ".libs"))
        private.chmod(0o700)
        bindir = private / package.name / "pginstall" / "bin"
        home = folder / "home"
        with PostgresServer(bindir, home) as server:
            assert ask(server) == "1"
            assert server.bindir.is_relative_to(home / "binaries")
            copied = (server.bindir / "postgres").stat()
            assert (copied.st_uid, stat.S_IMODE(copied.st_mode)) == (0, 0o755)
        with PostgresServer(bindir, home) as server:
            assert (server.bindir / "postgres").stat().st_mtime_ns == copied.st_mtime_ns
        # Another version takes its place.
        with (bindir / "postgres").open("ab") as file:
            file.write(b"\0")
        with PostgresServer(bindir, home) as server:
            assert ask(server) == "1"
        assert [path.name for path in (home / "binaries").iterdir()] == [server.bindir.parents[2].name]

    def test_the_owner_of_the_data_stays_when_a_better_user_appears(
        home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        nobody = embedded._User("nobody", 65534, 65534, demoted=True)
        with monkeypatch.context() as patch:
            patch.setattr(embedded, "_candidate", lambda: nobody)
            with embedded_server(home) as server:
                write(server)
                assert server.data.stat().st_uid == 65534
        with embedded_server(home) as again:
            assert ask(again, "select answer from kept") == "42"
            assert again.data.stat().st_uid == 65534


def test_a_path_that_a_shell_would_misread(folder: Path) -> None:
    home = folder / "we ird, $x'\"q`id`;&"
    try:
        with embedded_server(home) as server:
            assert ask(server) == "1"
    finally:
        assert embedded.remove(home)


@pytest.mark.parametrize("name", ["l" * 120, "we ird, x';&", "中文"])
def test_long_and_odd_paths_get_a_socket_elsewhere(folder: Path, name: str, command: Start) -> None:
    home = folder / name
    with embedded_server(home) as server:
        assert ask(server) == "1"
        socket = Path(str(psycopg.conninfo.conninfo_to_dict(server.dsn)["host"]))
        assert socket != server.folder
        assert len(os.fsencode(socket / embedded.SOCKET_NAME)) < 107
        assert mode(socket) == 0o700
        assert socket.stat().st_uid == server.data.stat().st_uid
        assert server.data.is_relative_to(home)
        # Another command finds it where it is, whatever its own temporary folder.
        other = command(home, "    print(server.dsn, flush=True)\n")
        assert wait_for_pid(other) == server.postmaster_pid()
        assert other.stdout is not None
        assert other.stdout.read() == f"{server.dsn}\n"
    assert not socket.exists()


def test_a_socket_that_was_tidied_away_is_made_again(folder: Path) -> None:
    home = folder / ("l" * 120)
    first = embedded_server(home)
    first.start()
    pid = first.postmaster_pid()
    socket = Path(str(psycopg.conninfo.conninfo_to_dict(first.dsn)["host"]))
    shutil.rmtree(socket)
    # Not under the feet of those who use it.
    with pytest.raises(MsgxError, match="lost its socket") as e:
        embedded_server(home).start()
    assert e.value.exit_code is ExitCode.UNREACHABLE
    assert first._users_lock is not None
    first._users_lock.close()
    with embedded_server(home) as second:
        assert second.postmaster_pid() != pid
        assert ask(second) == "1"


def test_a_home_with_a_line_break_is_refused(folder: Path) -> None:
    with pytest.raises(MsgxError, match="line break") as e:
        embedded_server(folder / "a\nb").start()
    assert e.value.exit_code is ExitCode.CONFIG


def test_default_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSGX_HOME", "/some/where")
    assert default_home() == Path("/some/where")
    for value in ("", None):
        monkeypatch.setenv("XDG_DATA_HOME", "/data")
        monkeypatch.delenv("MSGX_HOME")
        if value is not None:
            monkeypatch.setenv("MSGX_HOME", value)
        assert default_home().name == "msgx"


# -- several users, and none


def test_the_last_of_several_users_stops_it(home: Path, command: Start) -> None:
    first, second = embedded_server(home), embedded_server(home)
    first.start()
    second.start()
    other = command(home, UNTIL_STDIN_ENDS)
    pid = first.postmaster_pid()
    assert pid == second.postmaster_pid() == wait_for_pid(other)
    first.stop()
    assert ask(second) == "1"
    second.stop()
    assert not gone(wait_for_pid(other))
    _, errors = other.communicate()
    assert (other.returncode, errors) == (0, "")
    assert gone(wait_for_pid(other))


def test_many_first_users_at_once(home: Path, command: Start) -> None:
    body = "    import psycopg\n    psycopg.connect(server.dsn).close()\n" + UNTIL_STDIN_ENDS
    processes = [command(home, body, wait=False) for _ in range(6)]
    pids = {wait_for_pid(process) for process in processes}
    assert len(pids) == 1
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    assert gone(pids.pop())


def test_users_that_come_and_go_never_meet_a_stopped_server(home: Path, command: Start) -> None:
    body = "    import psycopg\n    psycopg.connect(server.dsn).close()\n"
    for _ in range(4):
        processes = [command(home, body, wait=False) for _ in range(4)]
        for process in processes:
            _, errors = process.communicate(timeout=60)
            assert (process.returncode, errors) == (0, "")
    assert embedded_server(home).postmaster_pid() is None


def test_an_orphan_is_found_used_and_stopped(home: Path, command: Start) -> None:
    process = command(home, UNTIL_STDIN_ENDS)
    pid = wait_for_pid(process)
    process.kill()
    process.wait()
    assert not gone(pid)
    with embedded_server(home) as server:
        assert server.postmaster_pid() == pid
        assert ask(server) == "1"
    assert gone(pid)


def test_a_killed_server_is_recovered(home: Path) -> None:
    server = embedded_server(home)
    server.start()
    write(server)
    pid = server.postmaster_pid()
    assert pid
    os.kill(pid, signal.SIGKILL)
    wait_gone(pid)
    # Whoever uses it still may be alive in a place we cannot see: two servers would ruin the data.
    with pytest.raises(MsgxError, match="has died or runs in another container"):
        embedded_server(home).start()
    server.stop()
    with embedded_server(home) as again:
        assert ask(again, "select answer from kept") == "42"


@pytest.mark.parametrize("content", ["{pid}\n{data}\n1\n5432\n{folder}\n*\n1 1\nready\n", "999999999\n", "", "x\n"])
def test_a_stale_pid_file_does_no_harm(home: Path, content: str) -> None:
    with embedded_server(home) as server:
        pass
    text = content.format(pid=os.getpid(), data=server.data, folder=server.folder)
    (server.data / "postmaster.pid").write_text(text)
    with embedded_server(home) as again:
        assert ask(again) == "1"
        assert again.postmaster_pid() != os.getpid()


# -- interruptions


def test_half_of_an_initdb_is_started_again(home: Path) -> None:
    server = embedded_server(home)
    with server:
        pass
    half = server.folder / "data.new-0"
    server.data.rename(half)
    (half / "PG_VERSION").unlink()
    with embedded_server(home) as again:
        assert ask(again) == "1"
    assert not half.exists()


def test_a_command_killed_during_initdb(home: Path, command: Start) -> None:
    process = command(home, UNTIL_STDIN_ENDS, wait=False)
    wait_for_initdb(home)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    with embedded_server(home) as server:
        assert ask(server) == "1"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, -signal.SIGINT)]
)
def test_a_signal_ends_the_command_and_the_server(
    home: Path, command: Start, number: signal.Signals, code: int
) -> None:
    process = command(home, UNTIL_STDIN_ENDS)
    os.kill(process.pid, number)
    assert process.wait(timeout=60) == code
    assert gone(wait_for_pid(process))


def test_ctrl_c_reaches_the_command_first(home: Path, command: Start) -> None:
    body = (
        "    import psycopg\n    try:\n        print('ready', flush=True)\n"
        + textwrap.indent(UNTIL_STDIN_ENDS, "    ")
        + "    except KeyboardInterrupt:\n        with psycopg.connect(server.dsn) as connection:\n"
        "            print(connection.execute('select 7').fetchone()[0], flush=True)\n"
    )
    process = command(home, body)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    # The terminal sends it to the whole foreground group.
    os.killpg(process.pid, signal.SIGINT)
    assert process.stdout.read() == "7\n"
    assert process.wait(timeout=60) == 0
    assert gone(wait_for_pid(process))


def test_an_interruption_while_starting_leaves_nothing_running(home: Path, command: Start) -> None:
    process = command(home, UNTIL_STDIN_ENDS, wait=False)
    wait_for_initdb(home)
    os.kill(process.pid, signal.SIGTERM)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (143, "", "")
    assert embedded_server(home).postmaster_pid() is None
    with embedded_server(home) as server:
        assert ask(server) == "1"


def test_handlers_of_the_program_stay(home: Path) -> None:
    before = {number: signal.getsignal(number) for number in embedded._SIGNALS}
    with embedded_server(home):
        pass
    assert {number: signal.getsignal(number) for number in embedded._SIGNALS} == before


# -- what can be wrong


def refused(server: PostgresServer) -> MsgxError:
    with pytest.raises(MsgxError) as e:
        server.start()
    assert e.value.exit_code is ExitCode.CONFIG
    assert e.value.hint
    return e.value


@pytest.mark.parametrize("place", ["a-file", "a-file/below", "/proc/nowhere"])
def test_a_home_that_cannot_be(folder: Path, place: str) -> None:
    (folder / "a-file").touch()
    error = refused(embedded_server(folder / place))
    assert place.split("/")[-1] in str(error)
    assert "MSGX_HOME" in (error.hint or "")


if not ROOT:

    def test_an_unwritable_home(folder: Path) -> None:
        home = folder / "home"
        home.mkdir(mode=0o500)
        assert "MSGX_HOME" in (refused(embedded_server(home)).hint or "")
        home.rmdir()
        folder.chmod(0o500)
        assert "Permission denied" in str(refused(embedded_server(home)))


def test_another_major_version_is_refused_and_the_data_stay(home: Path) -> None:
    with embedded_server(home) as server:
        write(server)
    version = server.data / "PG_VERSION"
    real = version.read_text()
    version.write_text("9\n")
    error = refused(embedded_server(home))
    assert "PostgreSQL 9" in str(error)
    assert f"PostgreSQL {real.strip()}." in str(error)
    assert "remove" in (error.hint or "")
    version.write_text(real)
    with embedded_server(home) as again:
        assert ask(again, "select answer from kept") == "42"


def test_missing_programs(folder: Path) -> None:
    error = refused(PostgresServer(folder / "bin", folder / "home"))
    assert str(folder / "bin" / "postgres") in str(error)
    assert "msgx-driver[embedded]" in (error.hint or "")
    assert not (folder / "home").exists()


def test_programs_that_do_not_run(folder: Path) -> None:
    (folder / "bin").mkdir()
    for name in ("postgres", "initdb"):
        (folder / "bin" / name).write_text("not a program")
        (folder / "bin" / name).chmod(0o755)
    assert "cannot execute" in str(refused(PostgresServer(folder / "bin", folder / "home")))


def test_the_missing_extra_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MsgxError) as e:
        embedded_server(home)
    assert e.value.exit_code is ExitCode.CONFIG
    assert "pip install 'msgx-driver[embedded]'" in (e.value.hint or "")


def test_a_server_that_does_not_start_tells_why(home: Path) -> None:
    with embedded_server(home) as server:
        pass
    with (server.data / "postgresql.conf").open("a") as file:
        file.write("shared_buffers = 'nonsense'\n")
    error = refused(embedded_server(home))
    assert str(error).startswith("the embedded server did not start: LOG: ")
    assert "shared_buffers" in str(error)
    assert str(server.log) in (error.hint or "")
    assert server.postmaster_pid() is None


def test_a_full_disk_is_named(home: Path, command: Start) -> None:
    script = (
        "import resource, sys\nfrom pathlib import Path\n"
        "from msgx_driver.embedded import embedded_server\nfrom msgx_driver.errors import MsgxError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try:\n    embedded_server(Path(sys.argv[1])).start()\n"
        "except MsgxError as e:\n    print(e, e.hint, sep='\\n')\n    sys.exit(e.exit_code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, home],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    message, hint = done.stdout.splitlines()
    assert done.returncode == 3
    assert message.startswith(("cannot create the database", "cannot copy the server programs"))
    assert len(message) < 400
    assert "disk space" in hint
    with embedded_server(home) as server:
        assert ask(server) == "1"


def test_a_gate_that_stays_shut_names_who_holds_it(home: Path) -> None:
    with embedded_server(home):
        pass
    server = embedded_server(home)
    server._lock_timeout = 0.2
    with (home / "gate").open("r+b") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        gate.truncate(0)
        gate.write(b"process 4711")
        gate.flush()
        with pytest.raises(MsgxError, match="process 4711") as e:
            server.start()
    assert e.value.exit_code is ExitCode.UNREACHABLE
    server.start()
    server.stop()


def test_a_lock_that_is_a_link_is_not_followed(home: Path, folder: Path) -> None:
    with embedded_server(home):
        pass
    victim = folder / "victim"
    victim.write_text("keep me")
    for name in ("gate", "users"):
        (home / name).unlink()
        (home / name).symlink_to(victim)
        refused(embedded_server(home))
        (home / name).unlink()
        (home / name).hardlink_to(victim)
        assert "is not a lock file" in str(refused(embedded_server(home)))
        (home / name).unlink()
    assert victim.read_text() == "keep me"


# -- removing


def run_module(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "msgx_driver.embedded", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )


def test_remove_stops_an_orphan_and_deletes_everything(home: Path, command: Start) -> None:
    process = command(home, UNTIL_STDIN_ENDS)
    refused_while_used = run_module("remove", str(home))
    assert refused_while_used.returncode == ExitCode.UNREACHABLE
    assert "in use" in refused_while_used.stderr
    assert not gone(wait_for_pid(process))
    process.kill()
    process.wait()
    done = run_module("remove", str(home))
    assert (done.returncode, done.stderr) == (0, "")
    assert gone(wait_for_pid(process))
    assert not home.exists()


def test_remove_leaves_what_is_not_its_own(home: Path) -> None:
    with embedded_server(home):
        pass
    (home / "notes").write_text("mine")
    assert embedded.remove(home)
    assert [path.name for path in home.iterdir()] == ["notes"]
    assert not embedded.remove(home)
    assert (home / "notes").read_text() == "mine"


def test_remove_of_nothing_is_no_error(folder: Path) -> None:
    assert run_module("remove", str(folder / "nowhere")).returncode == 0
    assert run_module("remove", "").returncode == 2
    assert run_module().returncode == 2
    assert run_module("start", "x").stderr.startswith("usage:")
