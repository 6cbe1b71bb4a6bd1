"""Findings from the server's answer: one for each cause, on the line of its field."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pilothouse.cli.offline.findings import Finding, Severity
from pilothouse.cli.offline.manifests import Manifest
from pilothouse.cli.offline.server import CallAnswer
from pilothouse.machinery.objects import Json

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
"""References to missing objects for which the server refuses an object."""


def problems_of(manifest: Manifest, answer: CallAnswer) -> Iterator[Finding]:
    """Yield the errors of a refusal, and the warnings of any answer."""
    if not answer.is_well and not answer.is_there_already:
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
    """Whether the server refused unknown or duplicate fields, and has checked nothing else."""
    return not answer.is_well and _STRICT in answer.body.get("message", "")


def missing_reference(message: str) -> str:
    """Return the field that refers to a missing object; empty if the message is about something else."""
    return next((field for pattern, _, field in _NEEDED if pattern.search(message)), "")


def hint_for(message: str) -> str:
    """Return the next step for a reference to a missing object; empty for other messages."""
    for pattern, kind, _ in _NEEDED:
        if found := pattern.search(message):
            return f"there is no {kind} {found[1]}: {_GIVEN}"
    return ""


def _path_in(message: str) -> str:
    for pattern in (_UNKNOWN, _WRONG_TYPE):
        if found := pattern.search(message):
            return found[1]
    leading = _LEADING_PATH.match(message)
    return leading[1] if leading else missing_reference(message)
