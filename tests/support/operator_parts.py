"""Parts that tests of operators share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from patience import PATIENCE

from pilothouse.client import Client, Json, ListOptions

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
    options = ListOptions(field_selector=f"metadata.name={name}")
    async with asyncio.timeout(PATIENCE):
        while True:
            listing = await resource.list(options)
            if condition is None and not listing["items"]:
                return {}
            for obj in listing["items"]:
                if condition is not None and condition(obj):
                    return obj
            version = listing["metadata"]["resourceVersion"]
            newer = ListOptions(field_selector=f"metadata.name={name}", resource_version=version)
            async with await resource.watch(newer) as events:
                async for event in events:
                    if condition is None and event.type == "DELETED":
                        return event.object
                    if condition is not None and event.type in ("ADDED", "MODIFIED") and condition(event.object):
                        return event.object
