"""KMS v2: what is asked of a plugin, and when."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kms_plugin import KmsPlugin

from pilothouse.apiserver.storage.encryption.kms_provider import KmsProvider
from pilothouse.apiserver.storage.encryption.transformer import Plain
from pilothouse.apiserver.storage.errors import TransformFailed

KEY = b"/registry/secrets/default/a"


@pytest.fixture
async def plugin(tmp_path: Path) -> AsyncIterator[KmsPlugin]:
    async with KmsPlugin(tmp_path / "kms.sock") as running:
        yield running


@pytest.fixture
async def provider(plugin: KmsPlugin) -> AsyncIterator[KmsProvider]:
    made = KmsProvider.of({"name": "p", "endpoint": plugin.endpoint})
    await made.check()
    yield made
    await made.close()


async def restarted(plugin: KmsPlugin) -> KmsProvider:
    provider = KmsProvider.of({"name": "p", "endpoint": plugin.endpoint})
    await provider.check()
    return provider


async def test_values_are_written_and_read_without_asking_the_plugin_each_time(
    provider: KmsProvider, plugin: KmsPlugin
) -> None:
    stored = [await provider.transformer.to_storage(b"x", KEY) for _ in range(3)]
    assert [await provider.transformer.from_storage(each, KEY) for each in stored] == [Plain(b"x")] * 3
    assert plugin.decrypted == 0


async def test_after_a_restart_the_plugin_decrypts_a_key_once(provider: KmsProvider, plugin: KmsPlugin) -> None:
    stored = await provider.transformer.to_storage(b"x", KEY)
    again = await restarted(plugin)
    for _ in range(3):
        assert (await again.transformer.from_storage(stored, KEY)).value == b"x"
    assert plugin.decrypted == 1
    await again.close()


async def test_when_the_plugins_key_changes_new_values_use_it_and_old_ones_are_stale(
    provider: KmsProvider, plugin: KmsPlugin
) -> None:
    stored = await provider.transformer.to_storage(b"x", KEY)
    plugin.key_id = "key-2"
    await provider.check()
    assert await provider.transformer.from_storage(stored, KEY) == Plain(b"x", stale=True)
    again = await provider.transformer.to_storage(b"x", KEY)
    assert b"key-2" in again
    assert await provider.transformer.from_storage(again, KEY) == Plain(b"x")


async def test_a_plugin_that_is_not_well_says_why_and_is_asked_again(provider: KmsProvider, plugin: KmsPlugin) -> None:
    plugin.healthz = "disk full"
    await provider.check()
    assert provider.problem == "got unexpected healthz status: disk full"
    plugin.healthz = "ok"
    await provider.check()
    assert provider.problem == ""


async def test_without_a_plugin_nothing_is_written(tmp_path: Path) -> None:
    provider = KmsProvider.of({"name": "p", "endpoint": f"unix://{tmp_path / 'nobody'}", "timeout": "200ms"})
    await provider.check()
    assert "rpc error" in provider.problem
    with pytest.raises(TransformFailed, match="KMS provider p is not healthy"):
        await provider.transformer.to_storage(b"x", KEY)
    await provider.close()


async def test_a_key_that_nobody_confirmed_for_three_minutes_is_not_written_with_but_still_read(
    provider: KmsProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = await provider.transformer.to_storage(b"x", KEY)
    monkeypatch.setattr(provider, "_expires", 0.0)
    with pytest.raises(TransformFailed, match="expired"):
        await provider.transformer.to_storage(b"x", KEY)
    assert (await provider.transformer.from_storage(stored, KEY)).value == b"x"
