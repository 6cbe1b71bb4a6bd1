"""Shared keys in a directory: whoever comes first makes them, and nobody ever sees others."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest
from patience import PATIENCE

from pilothouse.controlplane.certificates.ensure import ensure_certificates
from pilothouse.controlplane.shared_keys.directory import NAMES, KeyDirectory, read_keys, write_keys
from pilothouse.controlplane.shared_keys.rotation import KINDS, trust


async def test_servers_that_start_at_once_get_the_same_keys(tmp_path: Path) -> None:
    found = await asyncio.gather(*(KeyDirectory(tmp_path / "pki").current() for _ in range(8)))
    assert all(keys == found[0] for keys in found)
    assert found[0] == read_keys(tmp_path / "pki")


async def test_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    for name in await KeyDirectory(tmp_path / "pki").current():
        expected = 0o600 if name.endswith(".key") else 0o644
        assert stat.S_IMODE((tmp_path / "pki" / name).stat().st_mode) == expected, name
    assert stat.S_IMODE((tmp_path / "pki").stat().st_mode) == 0o700


@pytest.mark.parametrize("written", range(1, len(NAMES)))
async def test_a_directory_that_was_left_half_written_is_completed(tmp_path: Path, written: int) -> None:
    whole = await KeyDirectory(tmp_path / "whole").current()
    there = {name: whole[name] for name in NAMES[:written] if name in whole}
    write_keys(there, tmp_path / "half")
    completed = await KeyDirectory(tmp_path / "half").current()
    assert there.items() <= completed.items()
    write_keys(completed, tmp_path / "data" / "pki")
    ensure_certificates(tmp_path / "data", bind_address="192.0.2.7")


async def test_whoever_follows_hears_of_a_change(tmp_path: Path) -> None:
    directory, follower = KeyDirectory(tmp_path), KeyDirectory(tmp_path)
    await follower.current()
    waiting = asyncio.create_task(follower.changed())
    changed = await directory.change(lambda keys: trust(keys, KINDS["ca"]))
    await asyncio.wait_for(waiting, PATIENCE)
    assert await follower.current() == changed


async def test_a_change_that_is_refused_leaves_everything(tmp_path: Path) -> None:
    directory = KeyDirectory(tmp_path)
    before = await directory.current()

    def refuse(keys: object) -> dict[str, bytes]:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await directory.change(refuse)
    assert await directory.current() == before
