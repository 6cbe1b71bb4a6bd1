"""The kind Fault: spec.match says whom it concerns, spec.effect what becomes of them, status what it has hit."""

from __future__ import annotations

from typing import Final

from pilothouse.bench.definitions import bench_resource, duration, number, record, texts
from pilothouse.kinds.definitions import flag_field, printer_column, text_field

_VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "post", "put", "*")

_MATCH: Final = record(
    "Whom it concerns: requests that fit every list that is given. An empty list is fitted by all. Calls that the"
    " server makes itself are only concerned where users names who makes them, and requests for the test bench only"
    " where resources names them.",
    {
        "verbs": texts("Verbs as in RBAC; of paths without a resource the methods in lower case.", of=_VERBS),
        "resources": texts("As pods, deployments.apps, pods/status or */scale; * for all, with subresources."),
        "namespaces": texts("Namespaces. What has none fits only where this is empty."),
        "names": texts("Names of objects; * at the end stands for anything."),
        "users": texts("Names of users; * at the end stands for anything."),
        "userAgents": texts("Beginnings of the User-Agent header."),
        "rate": {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": "The part of the requests that fit which is hit, by chance. Without it, all.",
        },
        "times": number("How many are hit, at most. Without it, there is no end.", minimum=1),
    },
)

_ANSWER: Final = record(
    "The answer, instead of what was asked for; nothing is done. A watch gets it as an ERROR event if it is a 410.",
    {
        "code": number("The HTTP status.", minimum=400, maximum=599),
        "reason": text_field("The reason of the Status; the usual one of the code, if it is not given.", maxLength=63),
        "message": text_field("The message of the Status.", maxLength=1024),
        "retryAfterSeconds": number("When to try again, as a header and in the Status.", minimum=0, maximum=3600),
    },
    required=["code"],
)

_DELAY: Final = record(
    "Time that passes before anything else is done. It may stand beside any other effect.",
    {"duration": duration("How long."), "jitter": duration("Up to how much longer, by chance.")},
    required=["duration"],
)

_WATCH: Final = record(
    "What becomes of the events of a watch. Bookmarks are not counted.",
    {
        "cutAfterEvents": number("The connection ends after so many events.", minimum=0),
        "expireAfterEvents": number("After so many events, an ERROR event says 410 Expired.", minimum=0),
        "dropEvery": number("Every event whose number can be divided by this is left out; 1 for all.", minimum=1),
        "duplicateEvery": number("Every event whose number can be divided by this is sent twice.", minimum=1),
    },
    rules={
        "!(has(self.cutAfterEvents) && has(self.expireAfterEvents))": "a watch can end in one way only",
    },
)

_EFFECTS: Final = ("answer", "cut", "watch", "staleByRevisions", "closeConnections")

_EFFECT: Final = record(
    "What becomes of them: one of these, or a delay, or both.",
    {
        "answer": _ANSWER,
        "delay": _DELAY,
        "cut": text_field(
            "The connection is cut: Before anything is done, or After, so that nobody learns that it was.",
            enum=["Before", "After"],
        ),
        "watch": _WATCH,
        "staleByRevisions": number(
            "Lists show the state so many revisions ago, and watches lag behind by as many.", minimum=1, maximum=100000
        ),
        "closeConnections": flag_field("All connections of the users and user agents that fit are closed, once, now."),
    },
    rules={
        " + ".join(f"(has(self.{name}) ? 1 : 0)" for name in _EFFECTS)
        + " <= 1": f"only one of {', '.join(_EFFECTS)} may be given",
        " || ".join(f"has(self.{name})" for name in (*_EFFECTS, "delay")): "an effect is needed",
    },
)

_STATUS: Final = record(
    "What it has done so far.",
    {
        "hits": number("How many requests it hit; of closeConnections, how many connections."),
        "effect": text_field("The effect, in few words."),
        "lastHit": text_field("The last request that it hit: who, what and when."),
    },
)

FAULT: Final = bench_resource(
    "Fault",
    "faults",
    "Fault makes the server misbehave towards some requests, until it is deleted.",
    spec=record("Whom it concerns, and how.", {"match": _MATCH, "effect": _EFFECT}, required=["effect"]),
    status=_STATUS,
    columns=[
        printer_column("Verbs", ".spec.match.verbs"),
        printer_column("Resources", ".spec.match.resources"),
        printer_column("Users", ".spec.match.users", priority=1),
        printer_column("Effect", ".status.effect"),
        printer_column("Hits", ".status.hits", "integer"),
        printer_column("Last Hit", ".status.lastHit", priority=1),
    ],
    rules={"has(self.spec)": "spec is needed"},
)
