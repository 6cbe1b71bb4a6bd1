"""A console on a thread of its own, beside a server whose event loop is not its business."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

from pilothouse.client.config.model import ClientConfig
from pilothouse.console.server import Console


def start_beside(config: ClientConfig, *, port: int = 0) -> str:
    """Return the address of a console that ends with this process. Raises OSError where the port is taken."""
    address: Future[str] = Future()
    threading.Thread(target=lambda: asyncio.run(_serve(config, port, address)), name="console", daemon=True).start()
    return address.result()


async def _serve(config: ClientConfig, port: int, address: Future[str]) -> None:
    try:
        address.set_result(await Console(config, port=port).start())
    except OSError as error:
        address.set_exception(error)
        return
    await asyncio.Event().wait()
