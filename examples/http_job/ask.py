"""Put a file of requests into the watched folder: `python ask.py 4`. The same number twice asks nothing new."""

import json
import sys
import time
from pathlib import Path

AGENTS = ("keyed", "listed")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    folder = Path("requests")
    folder.mkdir(exist_ok=True)
    now_ms = int(time.time() * 1000)
    lines = [
        json.dumps(
            {
                "invocation_id": f"order-{number}",
                "agent": AGENTS[number % len(AGENTS)],
                "message": {"order": number},
                "requested_at_ms": now_ms,
            }
        )
        for number in range(1, count + 1)
    ]
    # Written aside and moved in, so that no half file is ever read.
    aside = folder / ".asking"
    aside.write_text("".join(f"{line}\n" for line in lines))
    aside.rename(folder / f"{now_ms}.jsonl")


if __name__ == "__main__":
    main()
