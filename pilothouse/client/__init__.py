"""The client side of Kubernetes: REST, informers, work queues, controllers. Works against any cluster.

    async with connect(load_config()) as client:
        await client.resource("v1", "configmaps", namespace="default").list()

The public names are those in `__init__.pyi`.
"""

from __future__ import annotations

from pilothouse.machinery.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
