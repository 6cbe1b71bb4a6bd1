"""A process that is killed in the middle of its writes loses none that returned, and leaves none half done."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from pathlib import Path

import pytest
from crash_account import Account, check_history, check_last_values
from storage_backends import Backend

_WRITER = Path(__file__).parents[2] / "support" / "crash_writer.py"


async def _write_and_kill(backend: Backend, *options: str, after: int) -> Account:
    """Kills the process when `after` of its writes have returned."""
    command = (sys.executable, str(_WRITER), backend.name, backend.location, *options)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    account = Account()
    try:
        async for line in process.stdout:
            # What the process managed to say counts, even if it is heard after the kill. A torn last line was not said.
            if line.endswith(b"\n"):
                account.hear(line)
            if len(account.acknowledged) == after and process.returncode is None:
                process.send_signal(signal.SIGKILL)
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
    assert len(account.acknowledged) >= after
    return account


@pytest.mark.parametrize("seed", range(4))
async def test_every_write_that_returned_is_there_after_sigkill(backend: Backend, seed: int) -> None:
    store = await backend.open()
    start = await store.current_revision()
    await store.close()
    account = await _write_and_kill(backend, after=random.Random(seed).randint(20, 800))
    store = await backend.open()
    await check_history(store, account, start=start)
    await store.close()


@pytest.mark.parametrize("seed", range(3))
async def test_a_kill_in_the_middle_of_compaction_loses_nothing(backend: Backend, seed: int) -> None:
    account = await _write_and_kill(backend, "compact", after=random.Random(seed).randint(20, 800))
    store = await backend.open()
    await check_last_values(store, account)
    await store.close()
