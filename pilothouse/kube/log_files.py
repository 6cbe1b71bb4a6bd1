"""/logs: the files in /var/log, with --enable-logs-handler."""

from __future__ import annotations

import asyncio
import errno
import html
import mimetypes
import os
import stat
from collections.abc import AsyncIterator
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote

from pilothouse.apiserver.endpoints.routes import get_route
from pilothouse.apiserver.http import NO_SNIFFING, Request, Response
from pilothouse.apiserver.server.server import GenericAPIServer

DIRECTORY = Path("/var/log")
PATH = "/logs"

_CHUNK = 1 << 18
_UTF8 = "; charset=utf-8"


def install_log_files(server: GenericAPIServer, directory: Path = DIRECTORY) -> None:
    async def serve(request: Request) -> Response:
        if ".." in request.path.split("/"):
            return _error(400, "invalid URL path")
        path = request.path
        file = directory / request.path.removeprefix(PATH).strip("/")
        try:
            result = await asyncio.to_thread(os.stat, file)
        except FileNotFoundError:
            return _error(404, "404 page not found")
        except PermissionError:
            return _error(403, "403 Forbidden")
        except OSError as error:
            too_long = error.errno == errno.ENAMETOOLONG
            return _error(404, "file not found") if too_long else _error(500, "500 Internal Server Error")
        is_directory = stat.S_ISDIR(result.st_mode)
        if is_directory != path.endswith("/"):
            last = path.rstrip("/").rpartition("/")[2]
            return Response(301, b"", [(b"location", (f"{last}/" if is_directory else f"../{last}").encode())])
        modified = (b"last-modified", formatdate(result.st_mtime, usegmt=True).encode())
        return await _listing(file, modified) if is_directory else await _content(file, result.st_size, modified)

    route = get_route(serve, ())
    server.mux.handle(PATH, route)
    server.mux.handle_prefix(f"{PATH}/", route, listed=False)


async def _listing(directory: Path, modified: tuple[bytes, bytes]) -> Response:
    def names() -> list[str]:
        return sorted(f"{item.name}/" if item.is_dir() else item.name for item in os.scandir(directory))

    links = "".join(f'<a href="{quote(name)}">{html.escape(name)}</a>\n' for name in await asyncio.to_thread(names))
    head = '<!doctype html>\n<meta name="viewport" content="width=device-width">\n'
    body = f"{head}<pre>\n{links}</pre>\n".encode()
    return Response(200, body, [(b"content-type", f"text/html{_UTF8}".encode()), modified])


async def _content(file: Path, size: int, modified: tuple[bytes, bytes]) -> Response:
    """Stream the file up to its initial size: logs may grow while being read."""
    try:
        opened = await asyncio.to_thread(open, file, "rb")
    except PermissionError:
        return _error(403, "403 Forbidden")

    async def chunks() -> AsyncIterator[bytes]:
        remaining = size
        with opened:
            while remaining and (chunk := await asyncio.to_thread(opened.read, min(remaining, _CHUNK))):
                remaining -= len(chunk)
                yield chunk

    kind = mimetypes.guess_type(file.name)[0] or "text/plain"
    kind = "text/x-log" if file.suffix == ".log" else kind
    content_type = kind + _UTF8 if kind.startswith("text/") else kind
    headers = [(b"content-type", content_type.encode()), (b"content-length", str(size).encode()), modified]
    return Response(200, chunks(), headers)


def _error(status: int, text: str) -> Response:
    return Response(status, f"{text}\n".encode(), [(b"content-type", f"text/plain{_UTF8}".encode()), NO_SNIFFING])
