"""The aggregated ClusterRole of metrics-server: extends view to metrics."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from pilothouse.client.rest.client import Client
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.machinery.objects import Json
from pilothouse.nodes.metrics.objects import GROUP_VERSION

_AGGREGATED: Final = "rbac.authorization.k8s.io/aggregate-to-"
READER_ROLE: Final[Json] = {
    "metadata": {
        "name": "system:aggregated-metrics-reader",
        "labels": {_AGGREGATED + name: "true" for name in ("admin", "edit", "view")},
    },
    "rules": [{"apiGroups": [GROUP_VERSION.group], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]}],
}


async def install_reader_role(client: Client) -> None:
    """Create the role unless it exists."""
    with suppress(AlreadyExists):
        await client.resource("rbac.authorization.k8s.io/v1", "clusterroles").create(READER_ROLE)
