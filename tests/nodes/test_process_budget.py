"""The budget of simulated processes: no process uses more than its budget, whatever it runs."""

from __future__ import annotations

import asyncio
import io
import tarfile
import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patience import PATIENCE
from simulated_container import Box

from pilothouse.nodes.containers.budget import Budget, Cause, Holding, Killed, Limits, Machine
from pilothouse.nodes.containers.container import ArgumentsTooLong, expand, expanded_size
from pilothouse.nodes.containers.shell import CommandNotFound
from pilothouse.nodes.containers.words import NotSupported
from pilothouse.nodes.pods.ends import FOREVER, known_end, shortest_run

SMALL = Limits(steps=300, held=64 * 1024, written=256 * 1024)
_ENDS = (Killed, CommandNotFound, NotSupported, ArgumentsTooLong)
_COMMANDS = st.sampled_from(
    [
        "a=$a$a",
        "a=xxxxxxxxxxxxxxxx",
        'b="$a$b"',
        "export c=$b",
        "echo $a$b",
        "echo -e '\\n\\n' $a",
        "echo 'sh /tmp/s; sh /tmp/s' > /tmp/s",
        "echo $a$a >> /tmp/f",
        "cat /tmp/f /tmp/f >> /tmp/g",
        "cat /tmp/g",
        "sh /tmp/s",
        "sh -c 'sh /tmp/s'",
        "sh",
        "mkdir -p /tmp/$a/d",
        "touch /tmp/1 /tmp/2 /tmp/$b",
        "rm -rf /tmp/d /tmp/f",
        "ls -l / /tmp",
        "tar cf - /tmp",
        "tar xf - -C /tmp",
        "wc /tmp/f /tmp/g",
        "grep x",
        "tail -n 3 /tmp/f",
        "head",
        "tee /tmp/f /tmp/g",
        "test ! ! $a",
        "printf %s%s $a",
        "env",
        "cd /tmp",
        "exit 3",
        "nothing",
    ]
)
_SCRIPTS = st.lists(
    st.tuples(_COMMANDS, st.sampled_from([";", "|", "&&", "||", "\n", " > /tmp/f;", " < /tmp/g |"])),
    min_size=1,
    max_size=30,
)


async def run_within(limits: Limits, *words: str, stdin: bytes = b"") -> Budget:
    """Return the budget of a command that was run to whatever end."""
    box = Box()
    with suppress(*_ENDS):
        await box.run_binary(*words, stdin=stdin, limits=limits)
    assert box.budget is not None
    assert box.machine.processes == 0
    return box.budget


def check(used: Budget, limits: Limits) -> None:
    assert used.steps <= limits.steps
    assert used.held <= limits.held
    assert used.written <= limits.written


@settings(max_examples=150, deadline=None)
@given(_SCRIPTS, st.binary(max_size=64))
def test_whatever_the_script_no_budget_is_exceeded(parts: list[tuple[str, str]], stdin: bytes) -> None:
    script = "".join(command + sign for command, sign in parts)
    check(asyncio.run(run_within(SMALL, "sh", "-c", script, stdin=stdin)), SMALL)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=80), st.binary(max_size=64))
def test_whatever_the_text_a_script_has_an_end(script: str, stdin: bytes) -> None:
    check(asyncio.run(run_within(SMALL, "sh", "-c", script, stdin=stdin)), SMALL)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 255)), max_size=12), st.integers(0, 3000))
def test_whatever_the_archive_it_is_read_within_the_budget(changes: list[tuple[int, int]], length: int) -> None:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in ("a", "d/" + "b" * 120):
            member = tarfile.TarInfo(name)
            member.size = 3
            archive.addfile(member, io.BytesIO(b"abc"))
    data = bytearray(target.getvalue()[: length or None])
    for place, value in changes:
        if place < len(data):
            data[place] = value
    check(asyncio.run(run_within(SMALL, "tar", "xf", "-", "-C", "/tmp", stdin=bytes(data))), SMALL)


@pytest.mark.parametrize(
    ("limits", "script", "cause"),
    [
        (Limits(held=1 << 20), "a=x;" + "a=$a$a;" * 28, Cause.MEMORY),
        (Limits(held=1 << 20), "cat | cat", Cause.MEMORY),
        (Limits(steps=50), "true;" * 60, Cause.WORK),
        (Limits(written=1 << 20), "cat", Cause.WORK),
        (Limits(processor_seconds=0.0), "true", Cause.TIME),
        (Limits(wall_seconds=0.01), "true;" * 10_000, Cause.TIME),
    ],
)
async def test_a_process_over_its_budget_is_killed(limits: Limits, script: str, cause: Cause) -> None:
    with pytest.raises(Killed) as killed:
        await Box().run("sh", "-c", script, stdin=b"x" * (2 << 20), limits=limits)
    assert killed.value.cause is cause


async def test_a_process_that_is_killed_from_outside_ends_at_once() -> None:
    machine = Machine()

    async def wait() -> None:
        async with machine.process() as budget:
            asyncio.get_running_loop().call_soon(budget.kill, Cause.END)
            await budget.outside(asyncio.Event().wait())

    with pytest.raises(Killed) as killed:
        await wait()
    assert killed.value.cause is Cause.END
    assert machine.processes == 0


async def test_a_request_that_is_cancelled_is_not_taken_for_a_kill() -> None:
    machine, begun = Machine(), asyncio.Event()

    async def wait() -> None:
        async with machine.process() as budget:
            begun.set()
            await budget.outside(asyncio.Event().wait())

    task = asyncio.create_task(wait())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert machine.processes == 0


async def test_the_process_that_holds_most_is_killed_when_memory_is_used_up() -> None:
    machine, begun = Machine(memory=100), asyncio.Event()

    async def hold(size: int) -> None:
        async with machine.process() as budget:
            budget.hold(size)
            begun.set()
            await budget.outside(asyncio.Event().wait())

    large = asyncio.create_task(hold(80))
    await begun.wait()
    async with machine.process() as small:
        small.hold(30)
        with pytest.raises(Killed):
            await large
        small.hold(40)
        with pytest.raises(Killed):
            small.hold(40)


async def test_memory_is_given_back() -> None:
    machine = Machine(memory=100)
    for _ in range(3):
        async with machine.process() as budget:
            with Holding(budget) as held:
                held.add(90)
            budget.hold(90)


async def test_processes_have_the_processor_in_turns_and_leave_half_of_it() -> None:
    machine, order = Machine(), []

    async def work(name: str) -> None:
        async with machine.process() as budget:
            for _ in range(4):
                order.append(name)
                begin = time.thread_time()
                while time.thread_time() - begin < 0.006:
                    pass
                await budget.spend()

    begin = time.monotonic()
    await asyncio.gather(work("a"), work("b"), work("c"))
    assert time.monotonic() - begin >= 2 * 9 * 0.006  # nine turns are followed by as much rest
    assert sorted(order) == [*"aaaabbbbcccc"]
    assert [*"aaaa"] != order[:4]


async def test_a_waiter_that_is_cancelled_does_not_keep_the_turn() -> None:
    machine = Machine()
    async with machine.turn():
        waiting = asyncio.create_task(machine.take_turn())
        await asyncio.sleep(0)
        waiting.cancel()
    async with asyncio.timeout(PATIENCE), machine.turn():
        pass


def test_references_are_expanded_within_bounds() -> None:
    known = {"A": "x" * 1000, "B": ""}
    assert expand("$(A)$$(A) $(B)$(C) $A", {"A": "1", "B": ""}) == "1$(A) $(C) $A"
    assert expanded_size("$(A)$(A)", {name: len(value) for name, value in known.items()}.get) == 2000
    with pytest.raises(ArgumentsTooLong):
        expand("$(A)" * 200, known)


@pytest.mark.parametrize(
    "script",
    ["a" + " " * 60_000, "\n" * 60_000, "while true" + "\n" * 60_000, "echo x;" * 9000, "exit " + "9" * 6000, "exit ²"],
)
def test_ends_are_looked_for_in_linear_time(script: str) -> None:
    begin = time.thread_time()
    known_end({"command": ["sh", "-c", script]})
    shortest_run({"command": ["sh", "-c", script]})
    assert time.thread_time() - begin < 1.0  # quadratic time is tens of seconds


def test_ends_of_scripts_are_known() -> None:
    ends = {
        "sleep 5; exit 3": (5.0, 3),
        'echo "a b" && sleep "2"; false': (2.0, 1),
        "echo $PATH\n while true; do date; done": (FOREVER, 0),
        "exit 4294967299": (0.0, 3),
        "echo 'open": None,
        "echo a > /tmp/f": None,
        "echo while true; do": None,
    }
    for script, expected in ends.items():
        end = known_end({"command": ["sh", "-c", script]})
        assert (None if end is None else (end.after, end.exit_code)) == expected, script
