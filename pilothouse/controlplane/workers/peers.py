"""What workers ask each other: the metrics that each of them has counted."""

from __future__ import annotations

import asyncio
import logging
import marshal
from contextlib import suppress
from pathlib import Path

from pilothouse.apiserver.server.metrics_endpoint import REGISTRIES
from pilothouse.apiserver.server.metrics_of_many import Families, families_of
from pilothouse.controlplane.workers.membership import Membership

log = logging.getLogger(__name__)

_PATIENCE = 2.0


class WorkerPeers:
    """Asks the others over sockets in a folder that only this user can enter. One that does not answer is left out."""

    def __init__(self, member: Membership) -> None:
        self._member = member

    async def answer(self) -> None:
        """Answer the questions of the others for as long as it runs."""
        self._member.own_socket.unlink(missing_ok=True)  # of a worker of this number that was killed
        server = await asyncio.start_unix_server(_answer, self._member.own_socket)
        self._member.own_socket.chmod(0o600)  # whatever the umask
        async with server:
            await server.serve_forever()

    async def families(self, name: str) -> list[Families]:
        answers = await asyncio.gather(*(_ask(path, name) for path in self._member.others()))
        return [answer for answer in answers if answer is not None]


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        name = (await reader.readline()).decode().strip()
        if name in REGISTRIES:
            writer.write(await asyncio.to_thread(lambda: marshal.dumps(families_of(REGISTRIES[name]))))
        writer.close()
        await writer.wait_closed()


async def _ask(path: Path, name: str) -> Families | None:
    try:
        async with asyncio.timeout(_PATIENCE):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(f"{name}\n".encode())
            answer = await reader.read()
            writer.close()
    except OSError as error:  # a timeout, too
        log.warning("the metrics of %s are missing: %s", path.stem, error)
        return None
    families: Families = marshal.loads(answer)
    return families
