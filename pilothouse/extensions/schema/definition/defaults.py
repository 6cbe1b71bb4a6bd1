"""Validation of defaults: valid values of their schema, without fields that would be pruned."""

from __future__ import annotations

import copy
from typing import Any

from pilothouse.extensions.schema.checks import compile_check, run_check
from pilothouse.extensions.schema.definition.rules import judge_rules
from pilothouse.extensions.schema.embedded import MalformedEmbeddedResource, coerce, validate_embedded
from pilothouse.extensions.schema.problems import printable
from pilothouse.extensions.schema.pruning import prune_value
from pilothouse.extensions.schema.rules.evaluation import rule_node, validate_rules
from pilothouse.extensions.schema.structural import Structural
from pilothouse.machinery.equality import deep_equal
from pilothouse.machinery.field import Errors, Path, invalid


def validate_defaults(schema: Structural, path: Path, *, must_be_pruned: bool = True) -> Errors:
    """Validate all defaults of a schema, except in additionalProperties, as upstream."""
    if schema.default is not None:
        yield from _validate_default(schema, path.child("default"), must_be_pruned=must_be_pruned)
    if schema.items is not None:
        yield from validate_defaults(schema.items, path.child("items"), must_be_pruned=must_be_pruned)
    for name, child in schema.properties.items():
        at = path.child("properties").key(name)
        yield from validate_defaults(child, at, must_be_pruned=must_be_pruned)


def _validate_default(schema: Structural, path: Path, *, must_be_pruned: bool) -> Errors:
    default: Any = copy.deepcopy(schema.default)
    if must_be_pruned:
        pruned = copy.deepcopy(default)
        prune_value(pruned, schema)
        if not deep_equal(pruned, default):
            yield invalid(path, printable(default), "must not have unknown fields")
    try:
        list(coerce(default, schema, path, drop_invalid=False))
    except MalformedEmbeddedResource as malformed:
        yield malformed.error
        return
    found = list(validate_embedded(default, schema, path))
    found = found or list(run_check(compile_check(schema.source), default, path=path))
    yield from found or _rule_errors(schema, default, path)


def _rule_errors(schema: Structural, default: Any, path: Path) -> Errors:
    """Evaluate the rules on the default, both as an unchanged and as a new value. Rules that do not compile are
    reported again."""
    node = rule_node(schema, root=schema.embedded_resource, judge=judge_rules)
    if node is not None:
        found = list(validate_rules(node, default, default, path))
        yield from found or validate_rules(node, default, None, path)
