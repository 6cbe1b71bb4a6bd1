"""Whatever tenants run in simulated containers, other clients are served, and memory is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from hostile_scripts import COMMANDS, LARGE, HostileCommand, calling_each_other, doubling, environment_of_doublings
from livez_client import LivezClient, livez_client
from patience import PATIENCE
from serving_process import ServeProcess
from simulated_sessions import SimulatedPods

from pilothouse.client import Json

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

LONGEST_WAIT = 0.25
TRIES = 6
TOKEN = "nobodys-token"
MOST_MEMORY = 160 << 20
"""Bytes that a server may take more than before, at any time: old attacks took 800 MB and more."""
KEPT = 30 << 20
BUSY = 60


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    folder: Path = tmp_path_factory.mktemp("scripts")
    tokens = folder / "tokens.csv"
    tokens.write_text(f"{TOKEN},nobody,2\n")
    server = ServeProcess(folder / "data", f"--token-auth-file={tokens}", "--simulated-nodes=1")
    yield server
    server.close()


@pytest.fixture(scope="module")
def other(server: ServeProcess) -> Iterator[LivezClient]:
    ca, pid = str(server.data_dir / "pki/ca.crt"), server.process.pid
    with livez_client("127.0.0.1", server.port, ca_file=ca, token=TOKEN, pid=pid) as client:
        yield client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pods(server: ServeProcess) -> AsyncIterator[SimulatedPods]:
    """The pod `victim` runs, and has a file of 8 MiB."""
    async with SimulatedPods(server.port, server.tls()) as pods:
        await pods.create("victim", command=["sleep", "99999"])
        assert await pods.exec("victim", ["sh", "-c", "cat > /tmp/large"], b"a b " * (LARGE // 4)) == 0
        yield pods


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
async def test_others_are_served_while_a_script_runs(
    pods: SimulatedPods, server: ServeProcess, other: LivezClient, command: HostileCommand
) -> None:
    """A wait that is the server's own comes back each time."""
    waits: list[float] = []
    memory = server.memory
    server.forget_peak()
    while not waits or (waits[-1] > LONGEST_WAIT and len(waits) < TRIES):
        other.longest_wait()
        await command.play(pods, "victim")
        waits.append(other.longest_wait())
    assert min(waits) <= LONGEST_WAIT
    assert server.peak_memory - memory <= MOST_MEMORY


async def how_it_ended(pods: SimulatedPods, name: str) -> tuple[int, str]:
    def ended(status: Json) -> Json | None:
        found: Json | None = (status["state"] | status["lastState"]).get("terminated")
        return found

    found = ended(await pods.wait(name, ended))
    assert found is not None
    return found["exitCode"], found["reason"]


async def test_a_container_that_takes_too_much_memory_is_oom_killed(pods: SimulatedPods) -> None:
    await pods.create("oom", command=["sh", "-c", f"echo begin; {doubling()} echo end"])
    assert await pods.log("oom") == (200, b"begin\n")
    assert await how_it_ended(pods, "oom") == (137, "OOMKilled")


async def test_a_container_that_works_too_much_is_killed(pods: SimulatedPods) -> None:
    await pods.create("busy", command=["sh", "-c", calling_each_other()])
    status, text = await pods.log("busy")
    assert (status, text.splitlines()[0]) == (200, b"sh: can't open '/tmp/s24': No such file or directory")
    assert await how_it_ended(pods, "busy") == (137, "Error")


async def test_a_container_with_too_large_an_environment_is_not_started(
    pods: SimulatedPods, server: ServeProcess
) -> None:
    memory = server.memory
    server.forget_peak()
    await pods.create("environment", command=["sh"], env=environment_of_doublings())
    assert await how_it_ended(pods, "environment") == (128, "StartError")
    await pods.log("environment")
    assert server.peak_memory - memory <= MOST_MEMORY


async def test_many_busy_scripts_leave_the_server_to_others_and_end_with_their_clients(
    pods: SimulatedPods, server: ServeProcess, other: LivezClient
) -> None:
    sockets = [await pods.open("victim", ["sh", "-c", calling_each_other()]) for _ in range(BUSY)]
    waits: list[float] = []
    while not waits or (waits[-1] > LONGEST_WAIT and len(waits) < TRIES):
        other.longest_wait()
        assert await pods.exec("victim", ["true"]) == 0
        waits.append(other.longest_wait())
    assert min(waits) <= LONGEST_WAIT
    await asyncio.gather(*(socket.close() for socket in sockets))
    used = server.processor_seconds
    async with asyncio.timeout(PATIENCE):
        await asyncio.sleep(1)
        while (after := server.processor_seconds) - used > 0.3:  # scripts that go on use half of a processor
            used = after
            await asyncio.sleep(1)


async def test_a_command_ends_with_its_pod(pods: SimulatedPods) -> None:
    await pods.create("short-lived", command=["sleep", "99999"])
    running = asyncio.create_task(pods.exec("short-lived", ["sh", "-c", "touch /tmp/here; sleep 99999"]))
    while await pods.exec("short-lived", ["test", "-e", "/tmp/here"]) != 0:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    await pods.delete("short-lived")
    async with asyncio.timeout(PATIENCE):
        assert await running == 137


async def test_memory_does_not_grow_with_the_number_of_scripts(pods: SimulatedPods, server: ServeProcess) -> None:
    names = ("a variable doubled 28 times", "a large file in a pipe", "large words")
    memory: list[int] = []
    for _ in range(8):
        for name in names:
            await COMMANDS[name].play(pods, "victim")
        await pods.log("oom")
        memory.append(server.memory)
    assert (min(memory[4:]) - max(memory[:4])) >> 20 <= KEPT >> 20  # each round would keep some 60 MB
