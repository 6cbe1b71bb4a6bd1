"""Feature gates: make the server's gates available to handlers."""

from __future__ import annotations

from collections.abc import Awaitable

from pilothouse.apiserver.http import Filter, Handler, Request, Response
from pilothouse.apiserver.server.features import FeatureGates, serve_with


def with_feature_gates(gates: FeatureGates) -> Filter:
    def wrap(handler: Handler) -> Handler:
        def serve(request: Request) -> Awaitable[Response]:
            serve_with(gates)
            return handler(request)

        return serve

    return wrap
