"""All errors of an object, found in several passes, because a server reports the errors of one stage only.

    values of a wrong type → unknown fields → references to missing objects → validation

Each pass removes the reported errors from the object and sends it again, so that the server reaches the next stage.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any

from pilothouse.cli.offline.documents import Finding, Severity
from pilothouse.cli.offline.manifests import Manifest
from pilothouse.cli.offline.server import CallAnswer
from pilothouse.machinery.codec.body_errors import DocumentPlace
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema import types
from pilothouse.machinery.schema.examine import all_problems

STRICT = "fieldValidation=Strict&fieldManager=pilothouse-validate"
WARN = "fieldValidation=Warn&fieldManager=pilothouse-validate"
_MAX_PASSES = 6
"""One pass for types, one for unknown fields, and one for each of four kinds of references."""


@dataclass(frozen=True, slots=True)
class Tried:
    """The last answer, its object and query, and the findings of all passes."""

    answer: CallAnswer
    obj: Json
    query: str
    findings: list[Finding]


async def try_object(manifest: Manifest, send: Callable[[Json, str], Awaitable[CallAnswer]]) -> Tried:
    """Send the object with `send(object, query)` until no pass finds another error."""
    type_errors = _type_errors(manifest)
    cleared = [place.path for place, _ in type_errors]
    findings = [
        manifest.finding(Severity.ERROR, f"{place.path}: {text}", path=place.path) for place, text in type_errors
    ]
    obj, query = _without(manifest.obj, [place.pieces for place, _ in type_errors]), STRICT
    for _ in range(_MAX_PASSES):
        answer = await send(obj, query)
        known = {finding.message for finding in findings}
        findings += [
            finding
            for finding in problems_of(manifest, answer)
            if finding.message not in known and not _is_below(finding.field, cleared)
        ]
        if is_strict_refusal(answer) and query == STRICT:
            query = WARN
        elif (
            field := ("" if answer.ok else missing_reference(answer.body.get("message", "")))
        ) and field not in cleared:
            cleared.append(field)
            obj = _without(obj, [field.split(".")])
        else:
            break
    return Tried(answer, obj, query, findings)


def _type_errors(manifest: Manifest) -> list[tuple[DocumentPlace, str]]:
    """Return (place, message) of each value of a wrong type. Empty for custom resources, whose schema reports these."""
    group, kind = manifest.group_kind
    version = str(manifest.obj["apiVersion"]).rpartition("/")[2]
    known = types.of(GroupVersionKind(group, version, kind))
    return [] if known is None else all_problems(known.node, manifest.obj)


def _is_below(field: str, cleared: Iterable[str]) -> bool:
    """Whether an earlier pass removed the field: its absence is not an error of the manifest."""
    return any(field == path or field.startswith((f"{path}.", f"{path}[")) for path in cleared)


def _without(obj: Json, places: Sequence[Sequence[str | int]]) -> Json:
    """Return a copy with null at the places. Null keeps list indexes stable and fits every type."""
    if not places:
        return obj
    copy = deepcopy(obj)
    for *outer, last in places:
        value: Any = copy
        for piece in outer:
            value = value[piece]
        value[last] = None
    return copy


_STRICT = "strict decoding error: "
_UNKNOWN = re.compile(r'(?:unknown|duplicate) field "([^"]+)"')
_WRONG_TYPE = re.compile(r"Go struct field \w+\.([\w.\[\]]+) of type")
_LEADING_PATH = re.compile(r"([a-z]\w*(?:\.\w+|\[[^\]]*\])+): ")
_GIVEN = "add it to the manifests, or name a file that has it with --given"
_NEEDED = (
    # message of the server                                        kind              field of the reference
    (re.compile(r'serviceaccount "([^"]+)" not found'), "ServiceAccount", "spec.serviceAccountName"),
    (re.compile(r"no PriorityClass with name (\S+) was found"), "PriorityClass", "spec.priorityClassName"),
    (re.compile(r'RuntimeClass "([^"]+)" not found'), "RuntimeClass", "spec.runtimeClassName"),
    (re.compile(r'namespaces "([^"]+)" not found'), "Namespace", "metadata.namespace"),
)
"""(message, kind, field): references to missing objects that the server rejects."""


def problems_of(manifest: Manifest, answer: CallAnswer) -> Iterator[Finding]:
    """Yield the errors of a rejection, and the warnings of any answer."""
    if not answer.ok and not answer.already_exists:
        yield from _errors(manifest, answer.body)
    for warning in answer.warnings:
        yield manifest.finding(Severity.WARNING, warning, path=_path_in(warning))


def _errors(manifest: Manifest, status: Json) -> Iterator[Finding]:
    message = status.get("message", "")
    causes = (status.get("details") or {}).get("causes") or ()
    if _STRICT in message:
        for problem in _UNKNOWN.finditer(message.partition(_STRICT)[2]):
            yield manifest.finding(Severity.ERROR, problem[0], path=problem[1])
    elif causes and status.get("reason") == "Invalid":
        for cause in causes:
            field = cause.get("field") or ""
            text = f"{field}: {cause['message']}" if field else cause["message"]
            yield manifest.finding(Severity.ERROR, text, path=field)
    else:
        yield manifest.finding(Severity.ERROR, message, path=_path_in(message), hint=hint_for(message))


def is_strict_refusal(answer: CallAnswer) -> bool:
    """Whether the server rejected unknown or duplicate fields; it has checked nothing else then."""
    return not answer.ok and _STRICT in answer.body.get("message", "")


def missing_reference(message: str) -> str:
    """Return the field that refers to a missing object; empty for other messages."""
    return next((field for pattern, _, field in _NEEDED if pattern.search(message)), "")


def hint_for(message: str) -> str:
    """Return the next step for a missing reference; empty for other messages."""
    for pattern, kind, _ in _NEEDED:
        if findings := pattern.search(message):
            return f"there is no {kind} {findings[1]}: {_GIVEN}"
    return ""


def _path_in(message: str) -> str:
    for pattern in (_UNKNOWN, _WRONG_TYPE):
        if findings := pattern.search(message):
            return findings[1]
    leading = _LEADING_PATH.match(message)
    return leading[1] if leading else missing_reference(message)
