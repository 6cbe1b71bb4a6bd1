"""Whatever hostile clients send, others are served meanwhile: one event loop serves everybody, and nothing may hold it.

The other client asks `/livez` from a process of its own while the attacks are played one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from attacks import Attack, Victim, attacks_by_body, attacks_by_head
from livez_client import LivezClient, livez_client
from serving_process import ServeProcess, parsed

LONGEST_WAIT = 0.25
TRIES = 6
ADMIN_TOKEN, TOKEN = "admin-token", "nobodys-token"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    folder: Path = tmp_path_factory.mktemp("frozen")
    tokens = folder / "tokens.csv"
    tokens.write_text(f'{ADMIN_TOKEN},admin,1,"system:masters"\n{TOKEN},nobody,2\n')
    plugins = "--enable-admission-plugins=PodTolerationRestriction,ExtendedResourceToleration"
    server = ServeProcess(folder / "data", f"--token-auth-file={tokens}", "--authorization-mode=RBAC", plugins)
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


ATTACKS = [
    pytest.param(attack, marks=[] if number % 5 == 0 else [pytest.mark.slow])
    for attacks in (attacks_by_body(), attacks_by_head())
    for number, attack in enumerate(attacks)
]
"""One attack in five is in the first tier."""


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_others_are_served_while_a_client_attacks(victim: Victim, other: LivezClient, attack: Attack) -> None:
    """Floods and large heads are played in test_floods.py. A wait that is the server's own comes back each time."""
    waits: list[float] = []
    while not waits or (waits[-1] > LONGEST_WAIT and len(waits) < TRIES):
        other.longest_wait()
        attack.play(victim)
        waits.append(other.longest_wait())
    assert min(waits) <= LONGEST_WAIT


@pytest.mark.parametrize(
    "selector",
    [
        "labelSelector=" + "".join(f"label-{at}!=v," for at in range(60_000)) + "kubernetes.io/metadata.name=default",
        "fieldSelector=" + "metadata.name!=somebody," * 30_000 + "metadata.name=default",
    ],
    ids=["by labels", "by fields"],
)
def test_a_selector_of_nearly_a_megabyte_selects(server: ServeProcess, selector: str) -> None:
    status, body = server.get(f"/api/v1/namespaces?{selector}", token=ADMIN_TOKEN)
    assert (status, [each["metadata"]["name"] for each in parsed(body)["items"]]) == (200, ["default"])
