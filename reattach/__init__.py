"""Durable remote-agent calls for Apache Flink: submit once, re-attach after a crash."""

__version__ = "0.1.0"
