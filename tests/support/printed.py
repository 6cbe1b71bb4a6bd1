"""What kubectl printed, without what differs from run to run."""

from __future__ import annotations

import re

_AGE = re.compile(r"\d+(?:ms|[smh])(?:\d+[smh])?")
_TIME = re.compile(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}")


def table(text: str) -> list[list[str]]:
    """Rows of cells; an age is shown as `AGE`, an empty cell is left out."""
    rows = [re.split(r" {2,}", line.strip()) for line in text.splitlines() if line.strip()]
    return [["AGE" if _AGE.fullmatch(cell) else cell for cell in row] for row in rows]


def described(text: str) -> str:
    """Without trailing blanks; a point in time is shown as `TIME`."""
    return "\n".join(_TIME.sub("TIME", line).rstrip() for line in text.splitlines())
