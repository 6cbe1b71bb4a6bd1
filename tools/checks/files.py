"""Check files of a commit: text ends with one line break, and no file is large.

python -m tools.checks.files FILE…
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

LARGEST = 200_000
"""Bytes: everybody who clones the repository downloads each version of each file."""


def faults_of(file: Path) -> Iterator[str]:
    """Yield what is wrong with a file; a file with a NUL byte is binary and may end as it likes."""
    content = file.read_bytes()
    if len(content) > LARGEST:
        yield f"{file}: {len(content):,} bytes; the largest file may have {LARGEST:,}"
    if content and b"\0" not in content and (not content.endswith(b"\n") or content.endswith(b"\n\n")):
        yield f"{file}: text must end with exactly one line break"


def main() -> int:
    faults = [fault for file in map(Path, sys.argv[1:]) if file.is_file() for fault in faults_of(file)]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
