"""Shared keys in the store: sealed, made once, and opened by those only who have the token."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from patience import PATIENCE

from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.controlplane.certificates.ensure import ensure_certificates
from pilothouse.controlplane.shared_keys.directory import SharedKeys, read_keys, write_keys
from pilothouse.controlplane.shared_keys.record import JoinRefused, JoinToken
from pilothouse.controlplane.shared_keys.rotation import KINDS, trust
from pilothouse.controlplane.shared_keys.stored import StoredKeys, kept_token

KEY = "/registry/pilothouse.dev/sharedkeys/cluster"


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "store", fsync=False)
    yield store
    await store.close()


class Servers:
    """Those of one store, each with a data directory of its own."""

    def __init__(self, store: SqliteStore, folder: Path) -> None:
        self.store, self.folder = store, folder

    def keys(self, name: str, token: str = "") -> StoredKeys:
        self.dir(name).mkdir(exist_ok=True)
        return StoredKeys(self.store, "/registry", self.dir(name), token)

    async def start(self, name: str, token: str = "") -> SharedKeys:
        """What a server does when it starts."""
        found = await self.keys(name, token).current()
        write_keys(found, self.dir(name) / "pki")
        return found

    def dir(self, name: str) -> Path:
        return self.folder / name

    def token(self, name: str) -> str:
        kept = kept_token(self.dir(name))
        assert kept is not None
        return kept.text


@pytest.fixture
def servers(store: SqliteStore, tmp_path: Path) -> Servers:
    return Servers(store, tmp_path)


async def test_the_token_of_the_first_opens_its_keys_for_others(servers: Servers) -> None:
    made = await servers.start("first")
    assert await servers.start("second", servers.token("first")) == made
    assert servers.token("second") == servers.token("first")
    assert await servers.start("second") == made, "who has joined needs no token to start again"
    for name in ("join-token", "cluster.key"):
        assert stat.S_IMODE((servers.dir("second") / name).stat().st_mode) == 0o600


async def test_nothing_in_the_store_can_be_read_without_the_token(servers: Servers) -> None:
    made = await servers.start("first")
    entry = await servers.store.get(KEY)
    assert entry is not None
    assert not [name for name, content in made.items() if content.splitlines()[1] in entry.value]
    assert servers.token("first").partition(".")[2].encode() not in entry.value


async def test_servers_that_start_at_once_with_one_token_get_the_same_keys(servers: Servers) -> None:
    token = JoinToken.new().text
    found = await asyncio.gather(*(servers.start(f"server{number}", token) for number in range(4)))
    assert all(keys == found[0] for keys in found)
    assert servers.token("server0") == token


async def test_of_servers_that_start_at_once_without_a_token_one_starts_and_the_others_say_what_they_need(
    servers: Servers,
) -> None:
    outcomes = await asyncio.gather(*(servers.start(f"server{number}") for number in range(4)), return_exceptions=True)
    refusals = [outcome for outcome in outcomes if isinstance(outcome, JoinRefused)]
    assert len(refusals) == 3
    assert all("give it --join" in str(refusal) for refusal in refusals)
    assert sum((servers.dir(f"server{number}") / "pki").exists() for number in range(4)) == 1
    late = next(number for number, outcome in enumerate(outcomes) if isinstance(outcome, JoinRefused))
    with pytest.raises(JoinRefused, match="give it --join"):
        await servers.start(f"server{late}")


@pytest.mark.parametrize(
    ("token", "complaint"),
    [
        ("aaaaaa." + "0" * 32, "it is aaaaaa.…, and the cluster's is "),
        ("{id}." + "0" * 32, "its secret is another"),
        ("{id}", "is not of the form"),
    ],
)
async def test_a_wrong_token_is_refused_before_anything_is_made(servers: Servers, token: str, complaint: str) -> None:
    await servers.start("first")
    wrong = token.replace("{id}", servers.token("first")[:6])
    with pytest.raises(JoinRefused, match=complaint) as refusal:
        await servers.start("second", wrong)
    assert list(servers.dir("second").iterdir()) == []
    assert "0000" not in str(refusal.value)


async def test_an_old_token_is_refused_and_those_who_have_joined_go_on(servers: Servers) -> None:
    made = await servers.start("first")
    old = servers.token("first")
    await servers.start("second", old)
    await servers.keys("first").change_token(JoinToken.new())
    with pytest.raises(JoinRefused, match="the cluster's is"):
        await servers.start("third", old)
    assert await servers.start("second", old) == made
    assert servers.token("second") == servers.token("first") != old
    assert await servers.start("third", servers.token("second")) == made


async def test_the_keys_that_a_server_has_become_those_of_the_cluster(servers: Servers) -> None:
    paths = ensure_certificates(servers.dir("first"), bind_address="192.0.2.7")
    made = await servers.start("first")
    assert made == read_keys(paths.directory)
    assert await servers.start("second", servers.token("first")) == made


async def test_a_server_with_a_ca_of_its_own_keeps_it_and_does_not_join(servers: Servers) -> None:
    await servers.start("first")
    own = read_keys(ensure_certificates(servers.dir("other"), bind_address="192.0.2.7").directory)
    assert await servers.start("other") == own
    with pytest.raises(JoinRefused, match="join with an empty data directory"):
        await servers.start("other", servers.token("first"))


async def test_a_server_that_ended_before_its_keys_were_in_the_store_begins_again(servers: Servers) -> None:
    await servers.start("first")
    token, entry = servers.token("first"), await servers.store.get(KEY)
    assert entry is not None
    await servers.store.delete(KEY, expected=entry.modified)
    for name in ("cluster.key", *(f"pki/{file}" for file in read_keys(servers.dir("first") / "pki"))):
        (servers.dir("first") / name).unlink()
    made = await servers.start("first")
    assert await servers.start("second", token) == made


async def test_those_who_follow_hear_of_a_change_and_of_two_changes_at_once_none_is_lost(servers: Servers) -> None:
    await servers.start("first")
    follower = servers.keys("second", servers.token("first"))
    await follower.current()
    waiting = asyncio.create_task(follower.changed())
    await asyncio.gather(
        servers.keys("first").change(lambda keys: trust(keys, KINDS["ca"])),
        servers.keys("first").change(lambda keys: trust(keys, KINDS["service-account"])),
    )
    await asyncio.wait_for(waiting, PATIENCE)
    assert {"ca-next.key", "sa-next.key"} <= (await follower.current()).keys()


async def test_another_clusters_data_directory_is_refused(servers: Servers, tmp_path: Path) -> None:
    await servers.start("first")
    entry = await servers.store.get(KEY)
    assert entry is not None
    await servers.store.delete(KEY, expected=entry.modified)
    await servers.start("second")
    with pytest.raises(JoinRefused, match="the keys of another cluster"):
        await servers.start("first")


@pytest.mark.parametrize(
    "found", [b"", b"[]", b'{"token": "x"}', b'{"token": {"id": "a", "sealed": ""}, "sealed": "?"}']
)
async def test_something_else_in_the_store_is_left_alone_and_refused(servers: Servers, found: bytes) -> None:
    await servers.store.create(KEY, found)
    with pytest.raises(JoinRefused):
        await servers.start("first", JoinToken.new().text)
    entry = await servers.store.get(KEY)
    assert entry is not None
    assert entry.value == found
    assert not list(servers.dir("first").iterdir())
