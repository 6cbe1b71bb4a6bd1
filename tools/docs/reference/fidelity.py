"""The page about fidelity: its text is written by hand, its numbers of recorded steps are the floors of CI."""

from __future__ import annotations

import re

from tools.docs.pages import DOCS, ROOT

_FLOORS = {"1.35": ".ci/golden-floor-1.35", "1.36": ".ci/golden-floor", "1.37": ".ci/golden-floor-1.37"}
_ROW = re.compile(r"^\| (1\.\d+) \| (.+?) \| [\d,]+ \|$", re.MULTILINE)


def fidelity_page() -> str:
    """Return the page with the number of recorded steps that CI demands of each version."""
    return _ROW.sub(
        lambda row: f"| {row[1]} | {row[2]} | {recorded_steps(row[1])} |", (DOCS / "reference/fidelity.md").read_text()
    )


def recorded_steps(version: str) -> str:
    return f"{int((ROOT / _FLOORS[version]).read_text()):,}"
