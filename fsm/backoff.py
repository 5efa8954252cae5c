"""Waiting times that grow and scatter without a random number.

The scatter comes from a hash of what is being retried, so a replay computes the same times and
ten thousand restored calls still do not act in the same instant.
"""

import zlib


def scatter(seed: str, span: int) -> int:
    """A fixed number in `[0, span]` for this seed."""
    return zlib.crc32(seed.encode()) % (span + 1)


def backoff_ms(seed: str, tries: int, first_ms: int, max_ms: int) -> int:
    """The wait before try number `tries` (0-based): exponential, capped, between half and whole.

    Args:
        seed: what is retried; the scatter differs from one seed to the next.
        first_ms: the wait before the first retry.
        max_ms: no wait is longer.
    """
    whole = min(max_ms, first_ms << min(tries, 30))
    half = whole // 2
    return max(1, half + scatter(f"{seed}/{tries}", whole - half))
