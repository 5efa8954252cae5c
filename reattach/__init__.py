"""Durable remote-agent calls for Apache Flink: submit once, re-attach after a crash."""

__version__ = "0.2.0.dev0"
