"""Parts that tests of operators share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import awaiting

from pilothouse.client import Client, Json

CLUSTER_SCOPED = {"customresourcedefinitions", "namespaces", "fleets"}


async def until(
    client: Client,
    api_version: str,
    plural: str,
    name: str,
    condition: Callable[[Json], Any] | None,
    namespace: str = "default",
) -> Json:
    """Return the object as soon as it satisfies the condition; without a condition, return when it is gone."""
    place = "" if plural in CLUSTER_SCOPED else namespace
    resource = client.resource(api_version, plural, namespace=place)
    if condition is not None:
        return await awaiting.until(resource, name, condition)
    await awaiting.until_gone(resource, name)
    return {}
