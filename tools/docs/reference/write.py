"""Writes the pages that are made, or says which of them are not what would be written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tools.docs.pages import DOCS
from tools.docs.reference.conformance import conformance_page
from tools.docs.reference.deviations import deviations_page
from tools.docs.reference.explore import explore_page
from tools.docs.reference.fidelity import fidelity_page
from tools.docs.reference.flags import flags_page
from tools.docs.reference.metrics import metrics_page
from tools.docs.reference.objects import objects_page
from tools.docs.reference.python_api import PACKAGES, python_page
from tools.docs.reference.versions import versions_page

_PAGES: dict[str, Callable[[], str]] = {
    "conformance.md": conformance_page,
    "deviations.md": deviations_page,
    "explore-yaml.md": explore_page,
    "fidelity.md": fidelity_page,
    "flags.md": flags_page,
    "metrics.md": metrics_page,
    "test-bench-fields.md": objects_page,
    "versions.md": versions_page,
    **{f"python-{package.rpartition('.')[2]}.md": partial(python_page, package) for package in PACKAGES},
}


def write() -> None:
    for file, text in _made():
        file.write_text(text)


def outdated() -> list[Path]:
    """Return the pages that are not as they would be written now."""
    return [file for file, text in _made() if not file.exists() or file.read_text() != text]


def _made() -> Iterator[tuple[Path, str]]:
    for name, made in _PAGES.items():
        yield DOCS / "reference" / name, made()
