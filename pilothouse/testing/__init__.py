"""A whole, real API server for as long as a test lasts.

async with server() as api:                      in this event loop
    await api.client().get_json("/version")

with Server(authorization_mode="RBAC") as api:   on a thread of its own, for code without an event loop
    subprocess.run(["kubectl", "--kubeconfig", api.kubeconfig, "get", "namespaces"])

Each has a data directory and a port of its own, is ready when its block begins, and is gone without a trace when it
ends. Options are the flags of `pilothouse serve` as keywords; `process=True` puts the server into another process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilothouse.machinery.lazy_names import lazy_names

if TYPE_CHECKING:
    from pilothouse.testing.answer import Answer
    from pilothouse.testing.api import API, BlockingAPI
    from pilothouse.testing.errors import StartError
    from pilothouse.testing.in_loop import server
    from pilothouse.testing.in_thread import Server

__all__ = ["API", "Answer", "BlockingAPI", "Server", "StartError", "server"]

__getattr__ = lazy_names(
    __name__,
    {
        "API": "api",
        "Answer": "answer",
        "BlockingAPI": "api",
        "Server": "in_thread",
        "StartError": "errors",
        "server": "in_loop",
    },
)
