"""Checks of objects and lists: size, and each part against its schema."""

from __future__ import annotations

from typing import Any

from pilothouse.extensions.schema import problems
from pilothouse.extensions.schema.correlation import Link
from pilothouse.extensions.schema.problems import SchemaProblem
from pilothouse.extensions.schema.values import Check, Compile, one_passes, two_pass
from pilothouse.machinery.equality import deep_equal
from pilothouse.machinery.objects import Json


def check_part(check: Check, value: Any, name: str, link: Link | None, found: list[SchemaProblem]) -> int:
    """Run the check, and discard its findings if the part is unchanged."""
    before = len(found)
    passed = check(value, name, link, found)
    if len(found) > before and link is not None and link.is_unchanged():
        del found[before:]
    return passed


def properties_check(schema: Json, compile: Compile) -> Check:
    declared = schema.get("properties") or {}
    fields = {name: compile(declared[name]) for name in sorted(declared)}
    additional = schema.get("additionalProperties")
    rest = compile(additional) if isinstance(additional, dict) else None
    required: list[str] = schema.get("required") or []
    most, fewest = schema.get("maxProperties"), schema.get("minProperties")
    if not fields and rest is None and not required and most is None and fewest is None:
        return one_passes

    def check(value: Json, name: str, link: Link | None, found: list[SchemaProblem]) -> int:
        if fewest is not None and len(value) < fewest:
            found.append(problems.fewer_properties(name, fewest, len(value)))
        if most is not None and len(value) > most:
            found.append(problems.more_properties(name, most, len(value)))
        passed = 1
        if rest is not None:
            for key in value:
                if key not in fields:
                    before = link.key(key) if link else None
                    passed += check_part(rest, value[key], f"{name}.{key}", before, found)
        for key, step in fields.items():
            if key in value:
                before = link.key(key) if link and not (not name and key in ("kind", "apiVersion")) else None
                passed += check_part(step, value[key], f"{name}.{key}" if name else key, before, found)
        found.extend(problems.missing(f"{name}.{key}") for key in required if key not in value)
        return passed

    return check


def items_check(schema: Json, compile: Compile) -> Check:
    items = schema.get("items")
    step = compile(items) if isinstance(items, dict) else None
    most, fewest, unique = schema.get("maxItems"), schema.get("minItems"), bool(schema.get("uniqueItems"))
    if step is None and most is None and fewest is None and not unique:
        return two_pass

    def check(value: list[Any], name: str, link: Link | None, found: list[SchemaProblem]) -> int:
        passed = 2
        if step is not None:
            for index, item in enumerate(value):
                before = link.index(index) if link else None
                passed += check_part(step, item, f"{name}[{index}]", before, found)
        if fewest is not None and len(value) < fewest:
            found.append(problems.fewer_items(name, fewest, len(value)))
        if most is not None and len(value) > most:
            found.append(problems.more_items(name, most, len(value)))
        if unique and any(deep_equal(item, other) for index, item in enumerate(value) for other in value[:index]):
            found.append(problems.repeated_items(name))
        return passed

    return check
