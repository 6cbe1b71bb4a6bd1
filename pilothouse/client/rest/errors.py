"""The errors of requests that the server did not answer. Those that it answers with are in `machinery/errors.py` and
`machinery/server_errors.py`.
"""

from __future__ import annotations

from pilothouse.machinery.status_error import PilothouseError


class ConnectionFailed(PilothouseError):
    """The server could not be reached, or the connection broke off. Whether a request took effect is unknown.

    >>> from pilothouse.client import ClientConfig, connect
    >>> from pilothouse.errors import ConnectionFailed
    >>> try:
    ...     await connect(ClientConfig(host="https://127.0.0.1:1")).request("POST", "/version")
    ... except ConnectionFailed as error:
    ...     print(type(error).__name__)
    ConnectionRefused
    """


class ConnectionRefused(ConnectionFailed):
    """Nobody listens there: the request did not take effect.

    >>> from pilothouse.errors import ConnectionFailed, ConnectionRefused
    >>> issubclass(ConnectionRefused, ConnectionFailed)
    True
    """


class RequestTimedOut(ConnectionFailed):
    """The answer did not come within the client's own time limit.

    >>> from pilothouse.errors import ConnectionFailed, RequestTimedOut
    >>> issubclass(RequestTimedOut, ConnectionFailed)
    True
    """


class InvalidResponse(PilothouseError):
    """The answer is not what a Kubernetes API sends.

    >>> from pilothouse.errors import InvalidResponse
    >>> try:
    ...     await client.get_json("/readyz")
    ... except InvalidResponse as error:
    ...     print(error)
    GET /readyz did not answer JSON: ...
    """
