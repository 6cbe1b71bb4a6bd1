"""The end of every chain: unknown path.

While the server installs paths the response is 503, because controllers treat a 404 as a deletion.
"""

from __future__ import annotations

from pilothouse.apiserver.http import Handler, Request, Response, text
from pilothouse.apiserver.server.lifecycle import LifecycleSignal
from pilothouse.machinery.server_errors import ServiceUnavailable

_TOO_EARLY = "the request has been made before all known HTTP paths have been installed, please try again"


def not_found(complete: LifecycleSignal) -> Handler:
    """Return the handler at the end of a chain. Until `complete` is signaled it raises ServiceUnavailable.

    >>> from pilothouse.apiserver import GenericAPIServer, LifecycleSignals, not_found
    >>> lifecycle = LifecycleSignals()
    >>> server = GenericAPIServer("mine", not_found(lifecycle.mux_and_discovery_complete), lifecycle=lifecycle)
    >>> server.next is None
    True
    """

    async def answer(request: Request) -> Response:
        if not complete.signaled:
            raise ServiceUnavailable(_TOO_EARLY, details={"retryAfterSeconds": 5})
        return text(404, "404 page not found\n", x_content_type_options="nosniff")

    return answer
