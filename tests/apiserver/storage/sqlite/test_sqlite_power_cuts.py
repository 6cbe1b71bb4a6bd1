"""A power cut at any moment loses no write that was acknowledged, and leaves a store that opens.

The process that is cut off is real: `crash_writer` on the embedded store, under strace. `power_cuts` makes of its trace
what the disk may hold at each moment, and the store is opened on that.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from crash_account import Account, check_history, check_last_values
from power_cuts import RecordedProcess
from traced_calls import NO_STRACE, can_trace

from pilothouse.apiserver.storage.sqlite.directory import DataDirectory
from pilothouse.apiserver.storage.sqlite.history import FIRST_REVISION
from pilothouse.apiserver.storage.sqlite.store import SqliteStore

pytestmark = pytest.mark.skipif(not can_trace(), reason=NO_STRACE)

_WRITER = Path(__file__).parents[3] / "support" / "crash_writer.py"
_STORE = "data/store"
SEEDS = int(os.environ.get("POWER_CUT_SEEDS", "1"))
SHARE = float(os.environ.get("POWER_CUT_SHARE", "0.2"))
"""Share of the moments at which the power is cut. With all moments, one seed takes minutes."""


@pytest.fixture(scope="module", name="scratch")
def _scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """In memory where that can be: only the trace says what is on disk."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path_factory.mktemp("traced")) as scratch:
        yield Path(scratch)


@pytest.fixture(scope="module", name="writing")
def _writing(scratch: Path) -> RecordedProcess:
    """A store that is created, written to, checkpointed, closed, opened again and written to."""
    return _recorded(scratch / "writing")


@pytest.fixture(scope="module", name="compacting")
def _compacting(scratch: Path) -> RecordedProcess:
    return _recorded(scratch / "compacting", "compact")


def _recorded(scratch: Path, *options: str) -> RecordedProcess:
    options = (*options, "rounds=2", "writes=16", "checkpoint=50")
    return RecordedProcess(scratch, str(_WRITER), "sqlite", f"{{root}}/{_STORE}", *options)


async def _history_is_there(image: Path, said: list[bytes]) -> None:
    store = await SqliteStore.open(image / _STORE, compaction_interval=0, fsync=False)
    try:
        await check_history(store, Account.of(said), start=FIRST_REVISION)
    finally:
        await store.close()
    with closing(sqlite3.connect(image / _STORE / DataDirectory.FILE)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def _last_values_are_there(image: Path, said: list[bytes]) -> None:
    store = await SqliteStore.open(image / _STORE, compaction_interval=0, fsync=False)
    try:
        await check_last_values(store, Account.of(said))
    finally:
        await store.close()


async def test_no_acknowledged_write_is_lost_in_a_power_cut(writing: RecordedProcess) -> None:
    cuts = await writing.cut(_history_is_there, share=0.04)
    assert cuts.faults == []
    assert cuts.tried > 30


async def test_a_power_cut_during_compaction_loses_nothing(compacting: RecordedProcess) -> None:
    cuts = await compacting.cut(_last_values_are_there, share=0.04)
    assert cuts.faults == []
    assert cuts.tried > 30


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_no_power_cut_of_thousands_loses_anything(scratch: Path, seed: int) -> None:
    for name, check, options in (("w", _history_is_there, ()), ("c", _last_values_are_there, ("compact",))):
        process = _recorded(scratch / f"{name}{seed}", *options)
        cuts = await process.cut(check, share=SHARE, each=3, seed=seed)
        print(f"{cuts.tried} power cuts {options}, {len(cuts.faults)} faults")
        assert cuts.faults == []


@pytest.mark.parametrize(
    "is_left_out",
    [
        lambda path: path.name == "store.db",
        lambda path: path.name == "store.db-wal",
        lambda path: path.name == "store",
        lambda path: True,
    ],
    ids=["database", "log", "directory", "all"],
)
async def test_a_sync_that_is_left_out_is_noticed(
    writing: RecordedProcess, is_left_out: Callable[[Path], bool]
) -> None:
    """Otherwise the tests above would show nothing: each kind of sync is needed, and without it they fail."""
    cuts = await writing.cut(_history_is_there, share=0.04, without_syncs=is_left_out, until_fault=True)
    assert cuts.faults
