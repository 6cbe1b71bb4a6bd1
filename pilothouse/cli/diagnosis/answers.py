"""What a server answers when it is asked what it serves, and what that means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from pilothouse.apiserver.outbound.request import OutboundResponse
from pilothouse.cli.diagnosis.delegation import refused_by_the_cluster
from pilothouse.cli.diagnosis.findings import Finding, failed, note, ok
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json

SLOW = 1.0
"""Seconds after which people notice: every client asks for discovery before it does anything."""
_SPEED_UP = "check the load and the log of the server, and the latency of its storage and of the cluster"
_AS_AGGREGATOR = "use --proxy-client-cert-file and --proxy-client-key-file to send requests as the aggregator"
NOT_BELIEVED = (
    "let the server read ConfigMap kube-system/extension-apiserver-authentication (Role "
    "extension-apiserver-authentication-reader), trust the front proxies in it, and allow system:masters everything"
)
"""Advice for a server that rejects the user whom a trusted front proxy names."""


@dataclass(frozen=True, slots=True)
class Asked:
    url: str
    wanted: GroupVersion
    seconds: float
    """How long the answer took."""
    identified: bool
    """The one who asked has shown who it is."""


def judge(answer: OutboundResponse, asked: Asked, others: Sequence[str] = ()) -> Finding:
    """`others`: what the server serves, where it does not serve what it was asked for."""
    text = f"{asked.url} answers {answer.status} ({asked.seconds * 1000:.1f} ms)"
    if 200 <= answer.status < 300:
        return other_group("discovery", _document(answer.body), asked) or timed("discovery", text, asked.seconds)
    refused = refused_by_the_cluster(answer.body.decode("utf-8", "replace"))
    if refused is not None:
        return refused
    if answer.status == 404:
        served = ", ".join(others) or "no API group"
        return failed("discovery", f"{text}: the server serves {served}", _right_group(asked.wanted))
    if answer.status not in (401, 403):
        return failed("discovery", text, "check the log of the server: it must answer the aggregator")
    if not asked.identified:
        return note("authentication", text, _AS_AGGREGATOR)
    return failed("authentication", text, NOT_BELIEVED)


def other_group(step: str, document: Json, asked: Asked) -> Finding | None:
    """The finding where the document is not about what was asked for."""
    found = document.get("groupVersion")
    if found == str(asked.wanted):
        return None
    said = (
        f"is a document of {found}, not of {asked.wanted}"
        if found
        else "answers with something other than a discovery document"
    )
    return failed(step, f"{asked.url} {said}", _right_group(asked.wanted))


def too_slow(step: str, url: str, seconds: float) -> Finding:
    return failed(step, f"{url}: no answer within {seconds:g} s, the timeout of the aggregator", _SPEED_UP)


def timed(step: str, text: str, seconds: float) -> Finding:
    return note(step, f"slow: {text}", _SPEED_UP) if seconds > SLOW else ok(step, text)


def served_groups(answer: OutboundResponse) -> list[str]:
    """The group versions in a server's answer about /apis."""
    groups = _document(answer.body).get("groups")
    versions = [version for group in _dicts(groups) for version in _dicts(group.get("versions"))]
    return [str(version.get("groupVersion")) for version in versions]


def _right_group(wanted: GroupVersion) -> str:
    return f"name in the APIService the group and version that the server serves, or the Service that serves {wanted}"


def _document(body: bytes) -> Json:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _dicts(found: Any) -> list[Json]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
