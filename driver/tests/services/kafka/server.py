"""A real Apache Kafka for tests: one node, own ports, own folder; and a reader that knows nothing of the product."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from msgx_driver.clock import SystemClock, wait_until
from tests.services.process import OwnProcess

__all__ = ["KafkaServer", "RawRecord", "missing_programs"]

HERE: Final = Path(__file__).resolve().parent
CACHE: Final = HERE.parents[3] / "build" / "kafka"
DOWNLOAD_SECONDS: Final = 600
START_SECONDS: Final = 90.0
READ_SECONDS: Final = 60.0
JAVA_OPTIONS: Final = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True)
class RawRecord:
    """One record as the broker holds it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes]


def missing_programs() -> list[str]:
    """Names of the programs that a local server needs and this machine lacks."""
    wanted = ["java"] if _libraries().is_dir() else ["java", "mvn"]
    return [name for name in wanted if shutil.which(name) is None]


def _libraries() -> Path:
    version = re.search(r"kafka_2\.13</artifactId>\s*<version>([^<]+)", (HERE / "pom.xml").read_text("utf-8"))
    assert version
    return CACHE / version[1]


def _download() -> Path:
    """Return the folder of the jars; brought once per checkout, and never seen half full."""
    target = _libraries()
    if target.is_dir():
        return target
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".download-", dir=CACHE))
    try:
        subprocess.run(
            ["mvn", "-q", "-B", "-f", HERE / "pom.xml", "dependency:copy-dependencies", f"-DoutputDirectory={folder}"],
            check=True,
            timeout=DOWNLOAD_SECONDS,
        )
        folder.chmod(0o755)
        if not target.is_dir():
            folder.rename(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return target


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(s.getsockname()[1]) for s in sockets]
    for s in sockets:
        s.close()
    return ports


class KafkaServer(OwnProcess):
    """The server that `bootstrap` names, or, without it, one of its own below `home`, a new temporary folder."""

    def __init__(self, bootstrap: str | None = None) -> None:
        self.local = bootstrap is None
        if bootstrap is not None:
            self.bootstrap = bootstrap
            return
        self._jars = _download()
        self.home = Path(tempfile.mkdtemp(prefix="msgx-kafka-"))
        self._log4j = f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}"
        port, controller = _free_ports(2)
        self.bootstrap = f"127.0.0.1:{port}"
        self._properties = self.home / "server.properties"
        self._properties.write_text(
            "process.roles=broker,controller\n"
            "node.id=1\n"
            f"controller.quorum.voters=1@127.0.0.1:{controller}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n"
            "controller.listener.names=CONTROLLER\n"
            f"log.dirs={self.home / 'data'}\n"
            "auto.create.topics.enable=false\n"
            "offsets.topic.replication.factor=1\n"
            "transaction.state.log.replication.factor=1\n"
            "transaction.state.log.min.isr=1\n"
            "group.initial.rebalance.delay.ms=0\n"
            "broker.session.timeout.ms=2000\n"
            "broker.heartbeat.interval.ms=500\n"
        )
        self._java("format.log", "kafka.tools.StorageTool", "format", "-t", _cluster_id(), "-c", str(self._properties))

    def _command(self, log: str, *arguments: str) -> list[str]:
        jars = f"{self._jars}{os.sep}*"
        java = ["java", *JAVA_OPTIONS, self._log4j, f"-Dmsgx.log={self.home / log}", "-cp", jars]
        return [*java, *arguments]

    def _java(self, log: str, *arguments: str) -> None:
        done = subprocess.run(self._command(log, *arguments), capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def __enter__(self) -> Self:
        if self.local:
            self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        if self.local:
            if self._process is not None:
                self.kill()
            shutil.rmtree(self.home, ignore_errors=True)

    def start(self) -> None:
        """Start the server on its ports and wait until it answers; what it held before is there again."""
        assert self.local
        assert self._process is None
        with (self.home / "out.log").open("ab") as out:
            self._process = subprocess.Popen(
                self._command("kafka.log", "kafka.Kafka", str(self._properties)),
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        wait_until(self._answers, timeout=START_SECONDS, clock=SystemClock(), interval=0.2, what="Kafka to start")

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError("Kafka ended:\n" + (self.home / "out.log").read_text("utf-8", "replace")[-4000:])
        host, _, port = self.bootstrap.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return bool(self._admin().list_topics(timeout=2).brokers)
        except (OSError, KafkaException):
            return False

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def create_topic(self, name: str, partitions: int = 3, **config: str) -> None:
        """Create a topic; underscores in the names of `config` stand for dots."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin = self._admin()
        admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(30)
        wait_until(
            lambda: self._known(admin, name, partitions),
            timeout=30,
            clock=SystemClock(),
            what=f"topic {name} to appear",
        )

    @staticmethod
    def _known(admin: AdminClient, name: str, partitions: int) -> bool:
        topic = admin.list_topics(timeout=10).topics.get(name)
        return topic is not None and len(topic.partitions) == partitions

    def read(self, topics: Sequence[str]) -> list[RawRecord]:
        """All records of the topics, from the beginning to the end as it is now; per partition in its order."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": f"reader-{uuid.uuid4().hex}",
                "enable.auto.commit": False,
                "enable.partition.eof": False,
                "isolation.level": "read_uncommitted",
            }
        )
        try:
            ends: dict[tuple[str, int], int] = {}
            for topic in topics:
                for partition in consumer.list_topics(topic, timeout=30).topics[topic].partitions:
                    low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)
                    if high > low:
                        ends[topic, partition] = high
            consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in ends])
            records: list[RawRecord] = []

            def all_read() -> bool:
                for message in consumer.consume(1000, timeout=0.5):
                    assert message.error() is None, message.error()
                    record = _raw(message)
                    if record.offset < ends[record.topic, record.partition]:
                        records.append(record)
                return len(records) >= sum(ends.values())

            wait_until(all_read, timeout=READ_SECONDS, clock=SystemClock(), interval=0, what="all records")
        finally:
            consumer.close()
        return sorted(records, key=lambda r: (r.topic, r.partition, r.offset))


def _raw(message: Any) -> RawRecord:
    headers = dict(message.headers() or [])
    return RawRecord(message.topic(), message.partition(), message.offset(), message.key(), message.value(), headers)


def _cluster_id() -> str:
    # Kafka's own form: 22 characters of URL-safe base64, the first no dash.
    return "M" + uuid.uuid4().hex[:21]
