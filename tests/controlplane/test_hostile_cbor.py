"""CBOR with its gate on: bodies that are made to hurt keep nobody waiting, are refused or stored, and end nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attacks import Victim
from livez_client import LivezClient, livez_client
from serving_process import ServeProcess

LONGEST_WAIT, TRIES = 0.25, 6
ADMIN_TOKEN, TOKEN = "admin-token", "nobodys-token"
CBOR, APPLY = "application/cbor", "application/apply-patch+cbor"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SIZE = 400_000


def text(value: str) -> bytes:
    return _head(0x60, len(value)) + value.encode()


def _head(major: int, length: int) -> bytes:
    if length < 24:
        return bytes([major | length])
    return bytes([major | 26]) + length.to_bytes(4, "big")


def config_map(name: str, data: bytes) -> bytes:
    """Return a ConfigMap whose data, a whole data item, is made elsewhere."""
    fields = {"apiVersion": text("v1"), "kind": text("ConfigMap"), "metadata": b"\xa1" + text("name") + text(name)}
    fields["data"] = data
    return b"\xd9\xd9\xf7" + _head(0xA0, len(fields)) + b"".join(text(key) + value for key, value in fields.items())


def keys(count: int, value: Callable[[int], bytes] = lambda number: b"\x60", prefix: str = "key") -> bytes:
    return _head(0xA0, count) + b"".join(text(f"{prefix}{number:07}") + value(number) for number in range(count))


BODIES: dict[str, Callable[[], bytes]] = {
    "empty arrays": lambda: config_map("a", _head(0x80, SIZE) + b"\x80" * SIZE),
    "empty arrays, without end": lambda: config_map("a", b"\x9f" + b"\x80" * SIZE),
    "empty maps": lambda: config_map("a", _head(0x80, SIZE) + b"\xa0" * SIZE),
    "keys": lambda: config_map("a", keys(30_000)),
    "one key, again and again": lambda: config_map("a", _head(0xA0, SIZE // 4) + (text("k") + b"\x60") * (SIZE // 4)),
    "strings of single bytes": lambda: config_map("a", b"\xa1\x61k\x7f" + b"\x61a" * (SIZE // 2) + b"\xff"),
    "tags": lambda: config_map("a", b"\xa1\x61k" + b"\xc6" * SIZE + b"\x60"),
    "times": lambda: config_map("a", keys(15_000, lambda number: b"\xc1\x1b" + number.to_bytes(8, "big"))),
    "base16": lambda: config_map("a", b"\xa1\x61k\xd7" + _head(0x40, SIZE) + b"\xff" * SIZE),
    "whole numbers as floats": lambda: config_map("a", _head(0x80, 40_000) + b"\xfb\x43\x40\0\0\0\0\0\0" * 40_000),
    "levels": lambda: b"\x81" * SIZE,
    "maps of maps": lambda: b"\xa1\x60" * (SIZE // 2),
    "a length of 2^63": lambda: config_map("a", b"\x9b" + b"\x7f" + b"\xff" * 7),
    "a length of 2^32": lambda: config_map("a", b"\xba" + b"\xff" * 4 + b"\x60\x60" * 1000),
    "a string of 2^31": lambda: config_map("a", b"\x7a\x7f\xff\xff\xff" + b"a" * SIZE),
    "unknown fields": lambda: b"\xd9\xd9\xf7" + _head(0xA0, 15_001) + text("kind") + text("ConfigMap")
    + keys(15_000)[5:],
}  # fmt: skip
FIRST_TIER = ("empty arrays", "keys", "levels", "a length of 2^63", "tags")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    folder: Path = tmp_path_factory.mktemp("cbor")
    tokens = folder / "tokens.csv"
    tokens.write_text(f'{ADMIN_TOKEN},admin,1,"system:masters"\n{TOKEN},nobody,2\n')
    gate = "--feature-gates=CBORServingAndStorage=true"
    server = ServeProcess(folder / "data", gate, f"--token-auth-file={tokens}", "--authorization-mode=RBAC")
    yield server
    server.close()


@pytest.fixture(scope="module")
def victim(server: ServeProcess) -> Victim:
    return Victim("127.0.0.1", server.port, str(server.data_dir / "pki/ca.crt"), ADMIN_TOKEN, TOKEN)


@pytest.fixture(scope="module")
def other(server: ServeProcess, victim: Victim) -> Iterator[LivezClient]:
    pid = server.process.pid
    with livez_client(victim.host, victim.port, ca_file=victim.ca_file, token=TOKEN, pid=pid) as client:
        yield client


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in FIRST_TIER else [pytest.mark.slow]) for name in BODIES]
)
def test_others_are_served_while_hostile_cbor_is_read(victim: Victim, other: LivezClient, name: str) -> None:
    """As a creation, an apply and the options of a delete. An apply of another type is a 500, as upstream has it.

    A wait that is the server's own comes back each time.
    """
    body, waits = BODIES[name](), [1.0]
    requests = (("POST", CONFIG_MAPS, CBOR), ("PATCH", f"{CONFIG_MAPS}/a?fieldManager=m&force=true", APPLY))
    while min(waits) > LONGEST_WAIT and len(waits) <= TRIES:
        other.longest_wait()
        for method, path, media_type in (*requests, ("DELETE", f"{CONFIG_MAPS}/a", CBOR)):
            status = victim.call(method, path, body, media_type=media_type, accept=CBOR, token=ADMIN_TOKEN)
            assert status in (200, 201, 400, 404, 409, 413, 415, 422, 500, 504), (method, status)
        victim.call("DELETE", f"{CONFIG_MAPS}/a", token=ADMIN_TOKEN)
        waits.append(other.longest_wait())
    assert min(waits) <= LONGEST_WAIT


def test_what_was_stored_as_cbor_is_read_in_every_form(victim: Victim, other: LivezClient) -> None:
    body = json.dumps({"metadata": {"name": "wide"}, "data": {f"k{number}": "v" for number in range(20_000)}})
    assert victim.call("POST", CONFIG_MAPS, body.encode(), token=ADMIN_TOKEN) == 201
    waits = [1.0]
    while min(waits) > LONGEST_WAIT and len(waits) <= TRIES:
        other.longest_wait()
        for accept in (CBOR, "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"):
            assert victim.call("GET", f"{CONFIG_MAPS}/wide", accept=accept, token=ADMIN_TOKEN) == 200
            assert victim.call("GET", CONFIG_MAPS, accept=accept, token=ADMIN_TOKEN) == 200
        waits.append(other.longest_wait())
    assert min(waits) <= LONGEST_WAIT
