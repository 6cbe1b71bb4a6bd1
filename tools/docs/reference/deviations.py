"""The page of differences from upstream, from `docs/reference/deviations.yaml`, with the share of equal behaviour."""

from __future__ import annotations

import json
import tarfile
from collections import Counter

import yaml

from tools.docs.pages import DOCS, ROOT
from tools.docs.reference.conformance import TOTAL, conformance_results
from tools.docs.reference.markdown import page, table

STATUSES = {
    "kept": "intended; stays",
    "partial": "partly implemented",
    "missing": "not implemented; requests are rejected, or the documentation says so",
}
_FIELDS = ("subject", "area", "upstream", "pilothouse", "reason", "status")
_ABOUT = {
    "The scheduler": "The scheduler selects the nodes that kube-scheduler v1.36 selects by default, with the same"
    " messages. The differences:",
    "Simulated nodes": "[Simulated nodes](simulated-nodes.md) documents their behaviour. Differences from a kubelet:",
}


def deviations_page() -> str:
    """Raises ValueError for a deviation with a missing, empty or unknown field."""
    rows = _deviations()
    parts = [
        "Every known difference, with its reason. A difference that is not on this page is a defect.",
        "## Share of equal behaviour",
        table(["", "equal", "of", "share"], [_recorded(), _conformance()]),
        "Recorded steps are requests with the responses of a real kube-apiserver v1.36.4. Each scenario defines the"
        " compared part of a response, usually the whole response. All conformance tests are counted, including the"
        " tests that need a program in a container.",
        "## Number of differences",
        table(["status", "", "deviations"], _statuses(rows)),
    ]
    for area in dict.fromkeys(row["area"] for row in rows):
        parts += [f"## {area}", _ABOUT.get(area, ""), _table([row for row in rows if row["area"] == area])]
    return page("Where Pilothouse differs from kube-apiserver", *parts, tested=_TESTED)


_TESTED = (
    "`.ci/run` replays the steps, and fails when fewer steps are equal; the page is generated from"
    " `docs/reference/deviations.yaml`, and `tests/docs/test_reference.py` compares the page."
)


def _deviations() -> list[dict[str, str]]:
    rows: list[dict[str, str]] = yaml.safe_load((DOCS / "reference" / "deviations.yaml").read_text())
    for row in rows:
        if set(row) != set(_FIELDS) or not all(row.values()) or row["status"] not in STATUSES:
            raise ValueError(
                f"{row.get('subject')}: a deviation has {', '.join(_FIELDS)}, and one of {', '.join(STATUSES)}"
            )
    return rows


def _table(rows: list[dict[str, str]]) -> str:
    order = ("subject", "upstream", "pilothouse", "reason", "status")
    return table(
        ["subject", "upstream", "Pilothouse", "reason", "status"], [[row[name] for name in order] for row in rows]
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
    return _share("[conformance tests](conformance.md)", conformance_results()["run"]["passed"], TOTAL)


def _share(subject: str, same: int, total: int) -> list[str]:
    return [subject, f"{same:,}", f"{total:,}", f"{same / total:.1%}"]
