"""A remote command session over SPDY: streams and exit status."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Final

import orjson

from pilothouse.apiserver.outbound.targets import Target
from pilothouse.apiserver.proxy.stream_tunnel import SPDY
from pilothouse.apiserver.proxy.upgrades import Upgraded, ask_for_upgrade
from pilothouse.apiserver.spdy.connection import SpdyConnection
from pilothouse.apiserver.spdy.stream import SpdyStream
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.server_errors import InternalError

EXIT_CODE_CAUSE: Final = "ExitCode"
NON_ZERO_EXIT_CODE: Final = "NonZeroExitCode"
_V4, _V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
_PROTOCOLS: Final = (_V5, _V4, "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
_RESIZABLE: Final = _PROTOCOLS[:3]
_PING_SECONDS: Final = 5.0
_MAX_STATUS: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class SessionStreams:
    """The streams of a session, besides the error stream."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class RemoteCommand:
    """Context manager of an open session. Raises InternalError if the backend does not open the session."""

    stdin: SpdyStream | None = None
    stdout: SpdyStream | None = None
    stderr: SpdyStream | None = None
    resize: SpdyStream | None = None
    _error: SpdyStream

    def __init__(self, target: Target, streams: SessionStreams) -> None:
        self._target = target
        self._wanted = streams
        self._protocol = ""
        self._tasks: list[asyncio.Task[None]] = []
        self._connection: SpdyConnection

    async def __aenter__(self) -> RemoteCommand:
        protocols = [(b"x-stream-protocol-version", each.encode()) for each in _PROTOCOLS]
        answer = await ask_for_upgrade(
            "POST",
            self._target,
            [
                (b"host", self._target.authority.encode()),
                (b"connection", b"Upgrade"),
                (b"upgrade", SPDY.encode()),
                *protocols,
                (b"content-length", b"0"),
            ],
        )
        if not answer.is_switched or SPDY.lower() not in answer.header(b"upgrade").lower():
            raise InternalError.of(f"unable to upgrade connection: {await _problem(answer)}")
        self._protocol = answer.header(b"x-stream-protocol-version")
        self._connection = SpdyConnection(answer.reader, answer.writer, serves=False)
        work = (self._connection.run(), self._connection.ping_every(_PING_SECONDS))
        self._tasks = [asyncio.create_task(each) for each in work]
        try:
            wanted, create = self._wanted, self._create_stream
            self._error = await create("error")
            self.stdin = await create("stdin") if wanted.stdin else None
            self.stdout = await create("stdout") if wanted.stdout else None
            self.stderr = await create("stderr") if wanted.stderr and not wanted.tty else None
            self.resize = await create("resize") if wanted.tty and self._protocol in _RESIZABLE else None
        except (OSError, TimeoutError) as error:
            await self._close()
            raise InternalError.of(str(error) or "Timeout occurred") from None
        except BaseException:
            await self._close()
            raise
        return self

    async def _create_stream(self, kind: str) -> SpdyStream:
        return await self._connection.create_stream({"streamtype": (kind,)})

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        self._connection.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def status(self) -> Json:
        """Wait for the end of the session, and return its Status."""
        message = bytearray()
        while data := await self._error.read():
            message += data[: _MAX_STATUS - len(message)]
        if not message:
            return SUCCESS
        if self._protocol in (_V4, _V5):
            return _as_status(bytes(message))
        return _internal(f"error executing remote command: {message.decode('utf-8', 'replace')}")


SUCCESS: Final[Json] = {"metadata": {}, "status": "Success"}


def exit_status(code: int) -> Json:
    """Return the Status of a command with a non-zero exit code."""
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: command terminated with exit code {code}",
        "reason": NON_ZERO_EXIT_CODE,
        "details": {"causes": [{"reason": EXIT_CODE_CAUSE, "message": str(code)}]},
    }


def error_status(error: InternalError) -> Json:
    """Return the error as a Status for the error channel."""
    return {key: value for key, value in error.status.items() if key not in ("kind", "apiVersion")}


def _internal(reason: str) -> Json:
    return error_status(InternalError.of(reason))


def _as_status(message: bytes) -> Json:
    try:
        status = orjson.loads(message)
    except orjson.JSONDecodeError as error:
        return _internal(f"error stream protocol error: {error} in {message.decode('utf-8', 'replace')!r}")
    match status:
        case {"status": "Success"}:
            return SUCCESS
        case {"status": "Failure", "reason": "NonZeroExitCode"}:
            if not isinstance(details := status.get("details"), dict):
                return _internal("error stream protocol error: details must be set")
            for cause in details.get("causes") or ():
                if cause.get("reason") == EXIT_CODE_CAUSE:
                    text = str(cause.get("message"))
                    if text.isascii() and text.isdigit() and len(text) < 4 and int(text) < 256:
                        return exit_status(int(text))
                    return _internal(f'error stream protocol error: invalid exit code value "{text}"')
            return _internal(f"error stream protocol error: no {EXIT_CODE_CAUSE} cause given")
        case {"status": "Failure"}:
            return _internal(str(status.get("message") or ""))
    return _internal("error stream protocol error: unknown error")


async def _problem(answer: Upgraded) -> str:
    """Return the reason of a refused upgrade: the message of a Status, or the whole body."""
    body = await answer.beginning()
    with suppress(orjson.JSONDecodeError):
        match orjson.loads(body):
            case {"message": str(message)} | {"error": str(message)} if message.strip():
                return message.strip()
    return body.decode("utf-8", "replace").strip() or "empty server response"
