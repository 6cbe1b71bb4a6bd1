"""One response of the server."""

from __future__ import annotations

from typing import Any

import orjson

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: status, headers with lower-case names, and the whole body.

    >>> from pilothouse.testing import Server
    >>> with Server() as api:
    ...     answer = api.request("GET", "/api/v1/namespaces/nowhere")
    >>> answer.status, answer.json["reason"]
    (404, 'NotFound')
    """

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The parsed body. Raises ValueError if the body is not JSON."""
        return orjson.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The events of a completed watch."""
        return [orjson.loads(line) for line in self.body.splitlines()]
