"""The server's credentials for webhook calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias


class WebhookCredentials(Protocol):
    @property
    def client_certificate(self) -> bytes:
        """Return certificate and key as PEM; empty without a certificate."""

    async def headers(self) -> Mapping[str, str]:
        """Return the current authentication headers."""


FindCredentials: TypeAlias = Callable[[str], WebhookCredentials | None]
"""Find the credentials for a webhook at host:port or name.namespace.svc:port."""


def anonymous(target: str) -> WebhookCredentials | None:
    """Return None: the default without configured credentials."""
    return None
