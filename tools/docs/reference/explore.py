"""explore.yaml, from its JSON schema, and the kinds of perturbations and of bugs, from the code."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from enum import StrEnum

from pilothouse.explore.classify import BugClass
from pilothouse.explore.model import Oracle, PerturbationKind
from pilothouse.explore.report import REPORT_SCHEMA
from pilothouse.explore.scenario import SCHEMA
from tools.docs.reference.markdown import code, page, table
from tools.docs.reference.objects import field_rows


def explore_page() -> str:
    about = (
        "`pilothouse explore explore.yaml` reads the following fields. A duration is a number with a unit, such as"
        " `500ms`, `30s` or `5m`. [Explore](../concepts/explore.md) explains the perturbations and shows examples."
    )
    tested = (
        "the page is generated from the schema of explore.yaml, and from the perturbations and classes in the code;"
        " `tests/docs/test_reference.py` compares the page."
    )
    return page(
        "explore.yaml",
        about,
        "## Fields",
        table(["field", "type", ""], field_rows(SCHEMA, "")),
        "## Perturbations",
        "Names for `perturbations.include` and `perturbations.exclude`:",
        table(["kind", ""], _members(PerturbationKind)),
        "## Rules",
        "A run that breaks a rule is a failed run. An oracle checks each rule:",
        table(["oracle", ""], _members(Oracle)),
        "## Classes of bugs",
        "Failed runs with the same difference are one bug. The first class that fits is reported:",
        table(["class", ""], _members(BugClass)),
        "## Report",
        "`--json FILE` writes the report of an exploration, for programs and for the console. Every field is present."
        " `pilothouse explore --schema report` prints the JSON schema.",
        table(["field", "type", ""], _report_rows()),
        tested=tested,
    )


def _report_rows() -> Iterator[list[str]]:
    """Yield the fields of a report; both kinds of timelines have the same fields."""
    for field, of, about in field_rows(REPORT_SCHEMA, ""):
        if not field.startswith("`undisturbed[]"):
            yield [field, of, about.removesuffix(" Required.")]


def _members(enum: type[StrEnum]) -> Iterator[list[str]]:
    """Yield each member with the docstring that follows the member in the source."""
    (definition,) = ast.parse(inspect.getsource(enum)).body
    assert isinstance(definition, ast.ClassDef)
    for member, text in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(member, ast.Assign) and isinstance(member.targets[0], ast.Name):
            assert isinstance(text, ast.Expr)
            assert isinstance(text.value, ast.Constant)
            yield [code(enum[member.targets[0].id].value), str(text.value.value)]
