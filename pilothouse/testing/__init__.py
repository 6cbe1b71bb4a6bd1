"""Real API servers for tests.

async with server() as api:                      in this event loop
    await api.client().get_json("/version")

with Server(authorization_mode="RBAC") as api:   in a thread, for code without an event loop
    subprocess.run(["kubectl", "--kubeconfig", api.kubeconfig, "get", "namespaces"])

Each server has its own data directory and port, is ready when its block begins, and is removed completely when the
block ends. Options are the flags of `pilothouse serve` as keywords; `process=True` runs the server in another process.

`__init__.pyi` lists the public names.
"""

from __future__ import annotations

from pilothouse.machinery.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
