"""The kind Recording: what the users and programs that it selects have asked for since it was created."""

from __future__ import annotations

from typing import Final

from pilothouse.bench.definitions import bench_resource, number, record, texts
from pilothouse.kinds.definitions import printer_column, text_field

_REQUEST: Final = record(
    "Requests that are the same as far as rights go.",
    {
        "user": text_field("Who asked."),
        "verb": text_field("The verb, as in RBAC."),
        "group": text_field("The API group; empty for the core's, and for paths without a resource."),
        "resource": text_field("The resource; empty for paths that have none."),
        "subresource": text_field("The subresource, if any."),
        "namespace": text_field("The namespace; empty for all, and for what has none."),
        "name": text_field("The name of the object; empty if none was named, * if there were many."),
        "nonResourceURL": text_field("The path, where it has no resource."),
        "count": number("How often."),
    },
    required=["user", "verb", "count"],
)

RECORDING: Final = bench_resource(
    "Recording",
    "recordings",
    "Recording has what the users and programs that it selects asked for since it was created, whether they were"
    " allowed to or not. `pilothouse rbac --from-recording NAME` makes roles of it.",
    spec=record(
        "Whose requests are recorded; all, if nothing is said. Those that the server makes itself only by their users.",
        {
            "users": texts("Names of users; * at the end stands for anything."),
            "userAgents": texts("Beginnings of the User-Agent header."),
        },
    ),
    status=record(
        "What was asked for.",
        {
            "requests": {
                "type": "array",
                "description": "Each kind of request once.",
                "items": _REQUEST,
                "x-kubernetes-list-type": "atomic",
            },
            "total": number("How many requests there were."),
            "distinct": number("How many kinds of requests."),
            "left": number("How many are left out, because there were too many kinds."),
        },
    ),
    columns=[
        printer_column("Users", ".spec.users"),
        printer_column("Requests", ".status.total", "integer"),
        printer_column("Distinct", ".status.distinct", "integer"),
    ],
)
