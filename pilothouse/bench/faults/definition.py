"""The kind Fault: spec.match selects requests, spec.effect defines the fault, status counts the hits."""

from __future__ import annotations

from typing import Final

from pilothouse.bench.definitions import bench_resource, duration, number, record, texts
from pilothouse.kinds.definitions import flag_field, printer_column, text_field

_VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "post", "put", "*")

_MATCH: Final = record(
    "Selected requests: those that match every given list. An empty list matches all requests. Loopback calls of the"
    " server match only if users names their user, and requests for the test bench only"
    " if resources names them.",
    {
        "verbs": texts("Verbs as in RBAC; for non-resource paths, HTTP methods in lower case.", of=_VERBS),
        "resources": texts("Such as pods, deployments.apps, pods/status or */scale; * for all, with subresources."),
        "namespaces": texts("Namespaces. Cluster-scoped requests match only an empty list."),
        "names": texts("Object names, also of a create with a JSON body; a trailing * is a wildcard."),
        "users": texts("User names; a trailing * is a wildcard."),
        "userAgents": texts("Prefixes of the User-Agent header."),
        "rate": {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": "Probability that a matching request is hit; default: 1.",
        },
        "skip": number("Number of matching requests to pass before the first hit; default: 0.", minimum=0),
        "times": number("Maximum number of hits; default: unlimited.", minimum=1),
    },
)

_ANSWER: Final = record(
    "Response to send instead of handling the request. A watch gets a 410 as an ERROR event.",
    {
        "code": number("The HTTP status.", minimum=400, maximum=599),
        "reason": text_field("Reason of the Status; default: the usual reason for the code.", maxLength=63),
        "message": text_field("The message of the Status.", maxLength=1024),
        "retryAfterSeconds": number("Retry delay, as a header and in the Status.", minimum=0, maximum=3600),
    },
    required=["code"],
)

_DELAY: Final = record(
    "Delay before the request is handled. Can be combined with any other effect.",
    {"duration": duration("Duration of the delay."), "jitter": duration("Maximum random extra delay.")},
    required=["duration"],
)

_EVENTS: Final = record(
    "Effect on selected events of the matching watches. Events are counted over all matching watches.",
    {
        "namespaces": texts("Namespaces of the objects."),
        "names": texts("Object names; a trailing * is a wildcard."),
        "types": texts("Types of the events.", of=("ADDED", "MODIFIED", "DELETED")),
        "skip": number("Number of selected events to pass before the effect; default: 0.", minimum=0),
        "effect": text_field(
            "Hold: hold the event and all later events of its watch until the Fault is deleted, then send them."
            " HoldLatest: then send only the latest event of each object. HoldThenExpire: then end the watch with 410"
            " Expired. Expire: end the watch with 410 Expired. Duplicate: send the event twice. Drop: drop the event.",
            enum=["Hold", "HoldLatest", "HoldThenExpire", "Expire", "Duplicate", "Drop"],
        ),
    },
    required=["effect"],
)

_WATCH: Final = record(
    "Effects on the events of a watch. Bookmarks are not counted.",
    {
        "cutAfterEvents": number("Number of events before the connection is cut.", minimum=0),
        "expireAfterEvents": number("Number of events before an ERROR event with 410 Expired.", minimum=0),
        "dropEvery": number("Drop every n-th event; 1 for all.", minimum=1),
        "duplicateEvery": number("Send every n-th event twice.", minimum=1),
    },
    rules={
        "!(has(self.cutAfterEvents) && has(self.expireAfterEvents))": "a watch can end in one way only",
    },
)

_EFFECTS: Final = ("answer", "cut", "hold", "watch", "events", "staleByRevisions", "atRevision", "closeConnections")

_EFFECT: Final = record(
    "Effect on the selected requests: one of these, a delay, or both.",
    {
        "answer": _ANSWER,
        "delay": _DELAY,
        "cut": text_field(
            "Cut the connection Before the request is handled, or After, so that the client does not learn the result.",
            enum=["Before", "After"],
        ),
        "hold": text_field(
            "Hold the request until the Fault is deleted. Before: then cut the connection, without handling the"
            " request. After: handle the request first, then cut the connection. Through: then handle the request.",
            enum=["Before", "After", "Through"],
        ),
        "watch": _WATCH,
        "events": _EVENTS,
        "staleByRevisions": number(
            "Number of revisions by which lists and watches lag behind.", minimum=1, maximum=100000
        ),
        "atRevision": number(
            "Revision at which the API server stands still: lists that accept cached data (resourceVersion 0 or an"
            " older revision) show the state at the revision, and watches hold later events until the Fault is"
            " deleted.",
            minimum=1,
        ),
        "closeConnections": flag_field("Close all connections of the selected users and user agents, once."),
    },
    rules={
        " + ".join(f"(has(self.{name}) ? 1 : 0)" for name in _EFFECTS)
        + " <= 1": f"only one of {', '.join(_EFFECTS)} may be given",
        " || ".join(f"has(self.{name})" for name in (*_EFFECTS, "delay")): "an effect is needed",
    },
)

_STATUS: Final = record(
    "Effects so far.",
    {
        "hits": number("Number of hit requests; for closeConnections, of closed connections."),
        "effect": text_field("Summary of the effect."),
        "lastHit": text_field("The last hit request: user, request and time."),
    },
)

FAULT: Final = bench_resource(
    "Fault",
    "faults",
    "Fault makes the server misbehave for selected requests, until it is deleted.",
    spec=record("Selected requests and effect.", {"match": _MATCH, "effect": _EFFECT}, required=["effect"]),
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
