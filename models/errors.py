"""Errors for programmers and hosts. What is stored or emitted is data, never one of these."""


class ReattachError(Exception):
    """Base of every error this library raises on purpose."""


class ConfigError(ReattachError):
    """A configuration cannot be kept; the message names the key and what to write instead."""


class InvalidRequest(ReattachError):
    """A request from the input is malformed; the message names the field."""


class IllegalEvent(ReattachError):
    """A host delivered an event that cannot happen in this leaf. Nothing has changed."""


class CodecError(ReattachError):
    """Stored bytes could not be read, or a value could not be stored."""


class Corrupt(CodecError):
    """The bytes are not what this codec writes: truncated, foreign, hostile or damaged."""


class TooNew(CodecError):
    """The bytes were written by a newer release; upgrade before reading them."""


class TooLarge(CodecError):
    """A value or a blob is over its declared limit."""
