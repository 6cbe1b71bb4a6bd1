"""Where answers differ from upstream's, from `docs/reference/deviations.yaml`, and how many do not."""

from __future__ import annotations

import json
import re
import tarfile
from collections import Counter

import yaml

from tools.docs.pages import DOCS, ROOT
from tools.docs.reference.markdown import page, table

STATUSES = {
    "kept": "it is meant to be so, and stays",
    "partial": "a part of it is there",
    "missing": "it is not there; who asks for it is refused, or told",
}
_FIELDS = ("what", "area", "upstream", "pilothouse", "reason", "status")
_COUNTED = re.compile(r"^\|[^|]+\| (\d+) \| (\d+) \|", re.MULTILINE)
_ABOUT = {
    "The scheduler": "It finds the nodes that kube-scheduler v1.36 with its default configuration finds, in its words."
    " What differs:",
    "Simulated nodes": "[Simulated nodes](simulated-nodes.md) says what they do. What a kubelet does and they do not:",
}


def deviations_page() -> str:
    """Raises ValueError for a deviation that does not say all that there is to say."""
    rows = _deviations()
    parts = [
        "Everything that is known to differ, and why. What is not on this page and differs is a defect.",
        "## How much is the same",
        table(["", "the same", "of", "share"], [_recorded(), _conformance()]),
        "Recorded steps are requests whose answers a real kube-apiserver v1.36.4 gave. What is compared of an answer,"
        " most often all of it, is said in each scenario. Of the conformance tests, those count that look at the API.",
        "## How much differs",
        table(["status", "", "deviations"], _statuses(rows)),
    ]
    for area in dict.fromkeys(row["area"] for row in rows):
        parts += [f"## {area}", _ABOUT.get(area, ""), _table([row for row in rows if row["area"] == area])]
    return page("Where Pilothouse differs from kube-apiserver v1.36", *parts, tested=_TESTED)


_TESTED = (
    "the steps are replayed by `.ci/run`, which fails when fewer are the same; the page is made from"
    " `docs/reference/deviations.yaml`, and `tests/docs/test_reference.py` compares it."
)


def _deviations() -> list[dict[str, str]]:
    rows: list[dict[str, str]] = yaml.safe_load((DOCS / "reference" / "deviations.yaml").read_text())
    for row in rows:
        if set(row) != set(_FIELDS) or not all(row.values()) or row["status"] not in STATUSES:
            raise ValueError(
                f"{row.get('what')}: a deviation has {', '.join(_FIELDS)}, and one of {', '.join(STATUSES)}"
            )
    return rows


def _table(rows: list[dict[str, str]]) -> str:
    order = ("what", "upstream", "pilothouse", "reason", "status")
    return table(
        ["what", "upstream", "Pilothouse", "reason", "status"], [[row[name] for name in order] for row in rows]
    )


def _statuses(rows: list[dict[str, str]]) -> list[list[str]]:
    counted = Counter(row["status"] for row in rows)
    return [[status, meaning, str(counted[status])] for status, meaning in STATUSES.items()]


def _recorded() -> list[str]:
    floor = int((ROOT / ".ci" / "golden-floor").read_text())
    with tarfile.open(ROOT / "tests" / "recorded" / "scenarios.tar.xz") as archive:
        answers = [archive.extractfile(file) for file in archive if file.name.endswith(".golden.json")]
        total = sum(len(json.load(file)) for file in answers if file)
    return _share("steps of recorded scenarios, at least", floor, total)


def _conformance() -> list[str]:
    counts = _COUNTED.findall((DOCS / "reference" / "conformance.md").read_text())
    passed, total = (sum(int(count[column]) for count in counts) for column in (0, 1))
    return _share("[conformance tests](conformance.md) of what is API", passed, total)


def _share(what: str, same: int, total: int) -> list[str]:
    return [what, f"{same:,}", f"{total:,}", f"{same / total:.1%}"]
