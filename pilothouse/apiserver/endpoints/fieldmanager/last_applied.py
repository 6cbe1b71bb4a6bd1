"""Migration between `kubectl apply` and `kubectl apply --server-side`.

Client-side to server-side: unchanged fields of the last-applied annotation can be taken over without force. Server-side
to client-side: if the object has the annotation, kubectl's server-side applies keep it up to date.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from pilothouse.machinery.apply import fieldset
from pilothouse.machinery.apply.atoms import Atom, Unkeyed
from pilothouse.machinery.apply.compare import compare
from pilothouse.machinery.apply.elements import encode
from pilothouse.machinery.apply.fieldset import FieldSet
from pilothouse.machinery.apply.managed import Conflicts
from pilothouse.machinery.apply.typed import field_set
from pilothouse.machinery.apply.validate import TypedError, check
from pilothouse.machinery.codec.json import JsonError, parse
from pilothouse.machinery.objects import Json, annotations_of, metadata
from pilothouse.machinery.validation.object_meta import TOTAL_ANNOTATION_SIZE_LIMIT, annotations_size

KUBECTL = "kubectl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def remaining_conflicts(conflicts: Conflicts, atom: Atom, live: Json, api_version: str) -> Conflicts | None:
    """Return the conflicts that the last-applied annotation does not resolve; None if it resolves all."""
    allowed = _allowed(atom, live, api_version)
    left = [conflict for conflict in conflicts.conflicts if not fieldset.has(allowed, conflict.path)]
    return Conflicts(left) if left else None


def _allowed(atom: Atom, live: Json, api_version: str) -> FieldSet:
    """Return the fields of the last-applied configuration that have not changed since."""
    try:
        last = parse((annotations_of(live).get(LAST_APPLIED) or "null").encode()).value
        if not isinstance(last, dict) or last.get("apiVersion") != api_version:
            return {}
        check(atom, last)
        changes = compare(atom, last, live)
    except (JsonError, TypedError, Unkeyed):
        return {}
    fields = field_set(atom, last)
    for changed in (changes.modified, changes.added, changes.removed):
        fields = fieldset.difference(fields, changed)
    return fields


def keep_up_to_date(obj: Json, patch: Json) -> None:
    """Set the last-applied annotation to the patch if the object has one. Drop the annotation if the patch is too
    large."""
    if not annotations_of(obj).get(LAST_APPLIED):
        return
    annotations = metadata(obj)["annotations"]
    copy: dict[str, Any] = deepcopy(patch)
    annotations_of(copy).pop(LAST_APPLIED, None)
    annotations[LAST_APPLIED] = encode(_sorted(copy)) + "\n"
    if annotations_size(annotations) > TOTAL_ANNOTATION_SIZE_LIMIT:
        del annotations[LAST_APPLIED]


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return list(map(_sorted, value)) if isinstance(value, list) else value
