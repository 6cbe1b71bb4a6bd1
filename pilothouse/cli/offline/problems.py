"""From the server's answer to findings: one for each cause, on the line of its field."""

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
    (re.compile(r'serviceaccount "([^"]+)" not found'), "ServiceAccount"),
    (re.compile(r"no PriorityClass with name (\S+) was found"), "PriorityClass"),
    (re.compile(r'RuntimeClass "([^"]+)" not found'), "RuntimeClass"),
    (re.compile(r'namespaces "([^"]+)" not found'), "Namespace"),
)
"""What the server says of an object that it needs and does not have, and the kind of that object."""


def problems_of(manifest: Manifest, answer: CallAnswer) -> Iterator[Finding]:
    """Yield the errors of an answer that refuses, and the warnings of any."""
    if not answer.is_well:
        yield from _errors(manifest, answer.body)
    for warning in answer.warnings:
        yield manifest.finding(Severity.WARNING, warning, path=_path_in(warning))


def _errors(manifest: Manifest, status: Json) -> Iterator[Finding]:
    message = status.get("message", "")
    causes = (status.get("details") or {}).get("causes") or ()
    if _STRICT in message:
        for problem in _UNKNOWN.finditer(message.partition(_STRICT)[2]):
            yield manifest.finding(Severity.ERROR, problem[0], path=problem[1])
    elif causes and all(cause.get("field") for cause in causes):
        for cause in causes:
            yield manifest.finding(Severity.ERROR, f"{cause['field']}: {cause['message']}", path=cause["field"])
    else:
        yield manifest.finding(Severity.ERROR, message, path=_path_in(message), hint=hint_for(message))


def hint_for(message: str) -> str:
    """Return what to do about an object that is missing; empty where none is."""
    for pattern, kind in _NEEDED:
        if found := pattern.search(message):
            return f"there is no {kind} {found[1]}: {_GIVEN}"
    return ""


def _path_in(message: str) -> str:
    for pattern in (_UNKNOWN, _WRONG_TYPE):
        if found := pattern.search(message):
            return found[1]
    leading = _LEADING_PATH.match(message)
    return leading[1] if leading else ""
