"""A whole, real API server for as long as a test lasts.

async with server() as api:                      in this event loop
    await api.client().get_json("/version")

with Server(authorization_mode="RBAC") as api:   on a thread of its own, for code without an event loop
    subprocess.run(["kubectl", "--kubeconfig", api.kubeconfig, "get", "namespaces"])

Each has a data directory and a port of its own, is ready when its block begins, and is gone without a trace when it
ends. Options are the flags of `pilothouse serve` as keywords; `process=True` puts the server into another process.

The public names are those in `__init__.pyi`.
"""

from __future__ import annotations

from pilothouse.machinery.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
