"""Apache Kafka for tests."""

from tests.services.kafka.server import KafkaServer, RawRecord, missing_programs

__all__ = ["KafkaServer", "RawRecord", "missing_programs"]
