"""Objects of testing.pilothouse.dev as keywords say them, and what is done with those of one kind.

The server has them with `testing=True`. Whoever asks waits: with coroutines for an API, with calls for a BlockingAPI.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

from pilothouse.machinery.objects import Json

_API_VERSION: Final = "testing.pilothouse.dev/v1alpha1"
_MATCH: Final = ("verbs", "resources", "namespaces", "names", "users", "userAgents", "rate", "times")
_EFFECT: Final = ("answer", "delay", "cut", "watch", "staleByRevisions", "closeConnections")


def path_of(plural: str, name: str = "", subresource: str = "") -> str:
    return "/".join(part for part in (f"/apis/{_API_VERSION}/{plural}", name, subresource) if part)


def bench_object(kind: str, name: str, spec: Json) -> Json:
    name = name or f"{kind.lower()}-{uuid4().hex[:8]}"
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def fault_object(name: str, wishes: dict[str, Any]) -> Json:
    """Return the Fault: `answer=503` stands for its code, `delay="1s"` for its duration; other words are the fields'
    own with underscores. Raises TypeError for a word that a Fault does not have."""
    given = {_camel(word): value for word, value in wishes.items() if value is not None}
    if unknown := sorted(set(given) - {*_MATCH, *_EFFECT}):
        raise TypeError(f"a Fault has no {', '.join(unknown)}: match by {', '.join(_MATCH)}; do {', '.join(_EFFECT)}")
    if isinstance(given.get("answer"), int):
        given["answer"] = {"code": given["answer"]}
    if isinstance(given.get("delay"), str):
        given["delay"] = {"duration": given["delay"]}
    match = {word: _listed(given[word]) for word in _MATCH if word in given}
    return bench_object(
        "Fault", name, {"match": match, "effect": {word: given[word] for word in _EFFECT if word in given}}
    )


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _camel(word: str) -> str:
    first, *others = word.split("_")
    return first + "".join(other.capitalize() for other in others)
