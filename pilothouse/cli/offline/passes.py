"""Every error of one object, in several passes: a server reports the errors of one stage and stops there.

    values of a wrong type → unknown fields → references to missing objects → validation

Each pass sends the object without the errors of the passes before it, so that the next stage is reached.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

from pilothouse.cli.offline.findings import Finding, Severity
from pilothouse.cli.offline.manifests import Manifest
from pilothouse.cli.offline.problems import is_strict_refusal, missing_reference, problems_of
from pilothouse.cli.offline.server import CallAnswer
from pilothouse.machinery.codec.strict_failures import DocumentPlace
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema import types
from pilothouse.machinery.schema.examine import all_problems

STRICT = "fieldValidation=Strict&fieldManager=pilothouse-validate"
WARN = "fieldValidation=Warn&fieldManager=pilothouse-validate"
_MOST_PASSES = 6
"""Types and unknown fields take one pass each, and there are four kinds of references."""


@dataclass(frozen=True, slots=True)
class Tried:
    """The last answer, the object and the query that led to it, and the findings of all passes."""

    answer: CallAnswer
    obj: Json
    query: str
    findings: list[Finding]


async def try_object(manifest: Manifest, send: Callable[[Json, str], Awaitable[CallAnswer]]) -> Tried:
    """Send the object by `send(object, query)` until no pass finds another error."""
    misfits = _misfits(manifest)
    cleared = [place.path for place, _ in misfits]
    found = [manifest.finding(Severity.ERROR, f"{place.path}: {text}", path=place.path) for place, text in misfits]
    obj, query = _without(manifest.obj, [place.pieces for place, _ in misfits]), STRICT
    for _ in range(_MOST_PASSES):
        answer = await send(obj, query)
        known = {finding.message for finding in found}
        found += [
            finding
            for finding in problems_of(manifest, answer)
            if finding.message not in known and not _is_below(finding.field, cleared)
        ]
        if is_strict_refusal(answer) and query == STRICT:
            query = WARN
        elif (
            field := ("" if answer.is_well else missing_reference(answer.body.get("message", "")))
        ) and field not in cleared:
            cleared.append(field)
            obj = _without(obj, [field.split(".")])
        else:
            break
    return Tried(answer, obj, query, found)


def _misfits(manifest: Manifest) -> list[tuple[DocumentPlace, str]]:
    """Return (place, message) of each value of a wrong type, for built-in kinds; the schema of others finds its own."""
    group, kind = manifest.group_kind
    version = str(manifest.obj["apiVersion"]).rpartition("/")[2]
    known = types.of(GroupVersionKind(group, version, kind))
    return [] if known is None else all_problems(known.node, manifest.obj)


def _is_below(field: str, cleared: Iterable[str]) -> bool:
    """Whether the field was cleared before this pass: its absence is no error of the manifest."""
    return any(field == path or field.startswith((f"{path}.", f"{path}[")) for path in cleared)


def _without(obj: Json, places: Sequence[Sequence[str | int]]) -> Json:
    """Return the object with null at the places: null fits every type, and the indexes of lists stay as they are."""
    if not places:
        return obj
    copy = deepcopy(obj)
    for *outer, last in places:
        value: Any = copy
        for piece in outer:
            value = value[piece]
        value[last] = None
    return copy
