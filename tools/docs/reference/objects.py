"""The kinds of the test bench, from their schemas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilothouse.bench.clock_kind import CLOCK
from pilothouse.bench.faults.definition import FAULT
from pilothouse.bench.recording_kind import RECORDING
from pilothouse.bench.settled_kind import SETTLED
from pilothouse.bench.snapshot_kind import SNAPSHOT
from pilothouse.extensions.customresources.model import CustomResource
from tools.docs.reference.markdown import code, page, table


def objects_page() -> str:
    about = (
        "`pilothouse serve --testing` serves the following cluster-scoped kinds in"
        " `testing.pilothouse.dev/v1alpha1`. [The test bench as API objects](test-bench-objects.md) shows examples."
    )
    parts = [part for kind in (FAULT, SETTLED, CLOCK, RECORDING, SNAPSHOT) for part in _kind(kind)]
    tested = "the page is generated from the schemas of the objects; `tests/docs/test_reference.py` compares the page."
    return page("Fields of the test bench's objects", about, *parts, tested=tested)


def _kind(resource: CustomResource) -> Iterator[str]:
    definition = resource.definition["spec"]
    schema = definition["versions"][0]["schema"]["openAPIV3Schema"]
    yield f"## {definition['names']['kind']}"
    yield schema["description"]
    for part in ("spec", "status"):
        yield table(["field", "type", ""], field_rows(schema["properties"][part], part))
    if rules := [rule["message"] for rule in [*_rules(schema)]]:
        yield "Validation rules: " + "; ".join(rules) + "."


def field_rows(schema: Any, path: str) -> Iterator[list[str]]:
    """Yield a row for each field below `path`: the field, its type, and its description."""
    for name, field in schema.get("properties", {}).items():
        inner = f"{path}.{name}" if path else name
        required = " Required." if name in schema.get("required", ()) else ""
        yield [code(inner), _type(field), field.get("description", "") + _bounds(field) + required]
        yield from field_rows(field.get("items", field), inner + ("[]" if "items" in field else ""))


def _type(field: Any) -> str:
    if "items" in field:
        return f"list of {_type(field['items'])}"
    types = field.get("format") or field.get("type", "any")
    return types if isinstance(types, str) else " or ".join(types)


def _bounds(field: Any) -> str:
    enum = field.get("enum") or field.get("items", {}).get("enum")
    said = [f"One of {', '.join(map(str, enum))}."] if enum else []
    if "maximum" in field:
        said.append(f"From {field['minimum']} to {field['maximum']}.")
    elif "minimum" in field:
        said.append(f"{field['minimum']} at least.")
    return "".join(f" {words}" for words in said)


def _rules(schema: Any) -> Iterator[Any]:
    yield from schema.get("x-kubernetes-validations", ())
    for field in schema.get("properties", {}).values():
        yield from _rules(field)
