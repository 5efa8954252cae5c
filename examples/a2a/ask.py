"""Put a file of requests into the watched folder: `python ask.py 4`. The same number twice asks nothing new."""

import json
import sys
import time
from pathlib import Path


def request(number: int, now_ms: int) -> dict[str, object]:
    """Every other one is a turn of a conversation with one of two customers."""
    turn: dict[str, object] = {"agent": "once"}
    if number % 2:
        turn = {"agent": "chat", "thread_id": f"customer-{number % 4}"}
    return {
        "invocation_id": f"question-{number}",
        "message": f"question {number}",
        "requested_at_ms": now_ms,
        **turn,
    }


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    folder = Path("requests")
    folder.mkdir(exist_ok=True)
    now_ms = int(time.time() * 1000)
    lines = [json.dumps(request(number, now_ms)) for number in range(1, count + 1)]
    # Written aside and moved in, so that no half file is ever read.
    aside = folder / ".asking"
    aside.write_text("".join(f"{line}\n" for line in lines))
    aside.rename(folder / f"{now_ms}.jsonl")


if __name__ == "__main__":
    main()
