"""/debug/flags: the flags that can be changed while the server runs. There is one: PUT /debug/flags/v sets how much
the log says."""

from __future__ import annotations

import logging

from pilothouse.apiserver.http import NO_SNIFFING, Request, Response
from pilothouse.apiserver.logs import v
from pilothouse.apiserver.server.mux import PathRecorderMux
from pilothouse.machinery.gofmt import quote

_MAX_BODY = 1024
_MOST = 2**32
_INDEX = b"""<html>
<head>
<title>/debug/flags/</title>
</head>
<body>
/debug/flags/<br>
<br>
flags:<br>
<table>
<tr>v<br>
</table>
<br>
full flags configurable<br>
</body>
</html>
"""


def install_debug_flags(mux: PathRecorderMux) -> None:
    mux.handle("/debug/flags", _index, listed=False)
    mux.handle_prefix("/debug/flags/", _index, listed=False)
    mux.handle("/debug/flags/v", _verbosity, listed=False)


async def _index(request: Request) -> Response:
    return Response(200, _INDEX, [(b"content-type", b"text/html; charset=utf-8")])


async def _verbosity(request: Request) -> Response:
    if request.method != "PUT":
        return _plain(406, "unsupported http method")
    asked = (await request.read_body(_MAX_BODY)).decode("utf-8", "replace")
    if not asked.isascii() or not asked.isdigit():
        return _plain(400, f"strconv.ParseUint: parsing {quote(asked)}: invalid syntax")
    if int(asked) >= _MOST:
        return _plain(400, f"strconv.ParseUint: parsing {quote(asked)}: value out of range")
    logging.getLogger().setLevel(v(int(asked)))
    return _plain(200, f"successfully set klog.logging.verbosity to {asked}")


def _plain(status: int, body: str) -> Response:
    return Response(status, f"{body}\n".encode(), [(b"content-type", b"text/plain"), NO_SNIFFING])
