"""The credentials of this server for the webhooks that it calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias


class WebhookCredentials(Protocol):
    @property
    def client_certificate(self) -> bytes:
        """PEM, with its key; empty where there is none."""

    async def headers(self) -> Mapping[str, str]:
        """Return the headers that authenticate a request, as they are at this moment."""


FindCredentials: TypeAlias = Callable[[str], WebhookCredentials | None]
"""For a webhook at host:port, or at name.namespace.svc:port."""


def anonymous(target: str) -> WebhookCredentials | None:
    """Webhooks are told nothing about their caller, unless somebody configured it."""
    return None
