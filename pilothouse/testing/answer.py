"""One answer of the server, as it came."""

from __future__ import annotations

from typing import Any

import orjson

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers with names in lower case, and the whole body, whatever the status is.

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
        """Return the body, parsed. Raises ValueError where it is no JSON."""
        return orjson.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """Return the events of a watch that has ended."""
        return [orjson.loads(line) for line in self.body.splitlines()]
