"""Write the golden files of a new schema: `python -m tests.models.golden.write`.

Run it once, when `SCHEMA_VERSION` has been raised, read what it wrote, and commit it. It refuses to
touch a folder that exists: golden files of a schema that was released are what stored state looks
like out there, and are never made to fit the code.
"""

import json
import sys
from pathlib import Path

from reattach.models.codec import CODECS, SCHEMA_VERSION
from tests.models.golden.samples import HINTS, described, samples


def write(root: Path) -> Path:
    """Write one file per kind into `root/v<schema>`.

    Raises:
        FileExistsError: the schema has its golden files already.
    """
    folder = root / f"v{SCHEMA_VERSION}"
    folder.mkdir()
    for kind in HINTS:
        lines = [
            json.dumps({"name": name, "hex": CODECS[kind].encode(value).hex(), "value": described(value)})
            for name, value in samples(kind)
        ]
        (folder / f"{kind}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


if __name__ == "__main__":
    try:
        print(f"wrote {write(Path(__file__).parent)}")
    except FileExistsError as error:
        sys.exit(f"{error.filename} exists: golden files are never written again; raise SCHEMA_VERSION first")
