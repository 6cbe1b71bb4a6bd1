"""The conditions of the bench's objects, for `kubectl wait --for=condition=…`."""

from __future__ import annotations

from typing import Final

from pilothouse.bench.definitions import record
from pilothouse.kinds.definitions import text_field
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import now

CONDITIONS: Final[Json] = {
    "type": "array",
    "description": "What has come of it.",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": record(
        "One thing that is so, or not.",
        {
            "type": text_field("What is so or not."),
            "status": text_field("Whether it is so.", enum=["True", "False", "Unknown"]),
            "reason": text_field("Why, in one word."),
            "message": text_field("Why, in a sentence."),
            "lastTransitionTime": text_field("Since when.", format="date-time"),
        },
        required=["type", "status"],
    ),
}


def condition(kind: str, holds: bool, reason: str, message: str = "") -> Json:
    return {
        "type": kind,
        "status": "True" if holds else "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": now(),
    }
