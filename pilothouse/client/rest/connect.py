"""Construction of clients, from a configuration or for an ASGI app in the same process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.config.model import ClientConfig
from pilothouse.client.flowcontrol import TokenBucket
from pilothouse.client.rest.asgi_transport import AsgiApp, AsgiTransport
from pilothouse.client.rest.client import Client, WarningHandler


def connect(config: ClientConfig, *, clock: Clock = REAL_CLOCK) -> Client:
    """Return a client over HTTP or HTTPS. No connection is opened before the first request.

    >>> from pilothouse.client import connect
    >>> async with connect(api.config()) as client:
    ...     print((await client.resource("v1", "namespaces").get("default"))["kind"])
    Namespace
    """
    from pilothouse.client.rest.http_transport import HttpTransport

    return Client(
        HttpTransport(config, clock),
        rate_limiter=TokenBucket(config.qps, config.burst, clock) if config.qps > 0 else None,
        user_agent=config.user_agent,
        timeout=config.timeout,
        clock=clock,
        host=urlsplit(config.host).netloc,
    )


def loopback(
    app: AsgiApp,
    *,
    headers: Mapping[str, str] | None = None,
    state: Mapping[str, Any] | None = None,
    user_agent: str = "pilothouse-loopback",
    on_warning: WarningHandler | None = None,
    clock: Clock = REAL_CLOCK,
    host: str = "localhost",
) -> Client:
    """Return a client that calls an ASGI app.

    The client has no rate limit: the called server controls its own load. `host` labels the request metrics.
    """
    transport = AsgiTransport(app, headers=headers, state=state)
    return Client(transport, user_agent=user_agent, on_warning=on_warning, clock=clock, host=host)
