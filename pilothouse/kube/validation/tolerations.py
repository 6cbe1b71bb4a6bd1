"""Validation of tolerations."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pilothouse.kube.validation.fields import one_of
from pilothouse.machinery.field import Errors, Path, invalid, not_supported
from pilothouse.machinery.gofmt import parse_int64
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.labels import validate_label_name
from pilothouse.machinery.validation.names import is_valid_label_value
from pilothouse.machinery.validation.pattern_format import EMPTY_ERROR

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_OPERATORS = ("Equal", "Exists")
_COMPARISONS = ("Lt", "Gt")
_INTEGER = re.compile("-?[1-9][0-9]*|0")
_INT64 = range(-(2**63), 2**63)


def validate_tolerations(tolerations: Sequence[Json], path: Path, *, allow_comparisons: bool = False) -> Errors:
    """With `allow_comparisons`, values may also be compared as numbers."""
    for position, toleration in enumerate(tolerations):
        at = path.index(position)
        key, operator = toleration.get("key") or "", toleration.get("operator") or ""
        if key:
            yield from validate_label_name(key, at.child("key"))
        elif operator != "Exists":
            reason = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid(at.child("operator"), operator, reason)
        effect = toleration.get("effect") or ""
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            reason = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(at.child("effect"), effect, reason)
        value = toleration.get("value") or ""
        if operator in ("Equal", ""):
            if messages := is_valid_label_value(value):
                yield invalid(at.child("operator"), value, ";".join(messages))
        elif operator == "Exists":
            if value:
                yield invalid(at.child("operator"), value, "value must be empty when `operator` is 'Exists'")
        elif operator not in _COMPARISONS:
            yield not_supported(at.child("operator"), operator, _OPERATORS)
        elif not allow_comparisons:
            yield not_supported(at.child("operator"), operator, _OPERATORS + _COMPARISONS)
        else:
            value_path = at.child("value")
            if not _INTEGER.fullmatch(value):
                reason = "must be a valid decimal integer in canonical form" if value else EMPTY_ERROR
                yield invalid(value_path, value, reason)
            try:
                parse_int64(value)
            except ValueError as error:
                yield invalid(value_path, value, str(error))
        if effect:
            yield from one_of(effect, at.child("effect"), TAINT_EFFECTS)
