"""What tenants may do to a server with simulated nodes: commands in containers, and containers themselves."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simulated_sessions import SimulatedPods

LARGE = 8 << 20
OVER_THE_BUDGET = {137}
SUCCEEDS = {0}
NOT_KNOWN = {"simulated containers do not know"}


@dataclass(frozen=True)
class HostileCommand:
    """A command in a container whose /tmp has a file of 8 MiB."""

    words: tuple[str, ...]
    outcomes: set[Any]
    """Exit codes, or parts of the message of an error."""
    stdin: Callable[[], bytes] = bytes
    tty: bool = False

    async def play(self, pods: SimulatedPods, pod: str) -> None:
        outcome = await pods.exec(pod, self.words, self.stdin(), tty=self.tty)
        as_expected = any(
            each in outcome for each in self.outcomes if isinstance(outcome, str) and isinstance(each, str)
        )
        assert as_expected or outcome in self.outcomes, outcome


def script(text: str, outcomes: set[Any], **rest: Any) -> HostileCommand:
    return HostileCommand(("sh", "-c", text), outcomes, **rest)


def calling_each_other(depth: int = 24) -> str:
    """Return a script that runs 2^depth scripts."""
    lines = (f"echo 'sh /tmp/s{number + 1}; sh /tmp/s{number + 1}' > /tmp/s{number}" for number in range(depth))
    return "; ".join((*lines, "sh /tmp/s0"))


def doubling(times: int = 28, first: str = "x") -> str:
    return f"a={first};" + "a=$a$a;" * times


def environment_of_doublings() -> list[dict[str, str]]:
    variables = ((f"E{number}", f"$(E{number - 1})" * 2) for number in range(1, 30))
    return [{"name": "E0", "value": "xxxxxxxx"}, *({"name": name, "value": value} for name, value in variables)]


def long_header() -> bytes:
    """Return an archive of one file that has very many attributes."""
    target, member = io.BytesIO(), tarfile.TarInfo("f")
    member.pax_headers = {f"k{number}": "v" for number in range(30_000)}
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(member)
    return target.getvalue()


def many_members() -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for number in range(12_000):
            archive.addfile(tarfile.TarInfo(f"many/{number}"))
    return target.getvalue()


COMMANDS: dict[str, HostileCommand] = {
    "a variable doubled 28 times": script(doubling(), OVER_THE_BUDGET),
    "a wide variable doubled 28 times": script(doubling(first="😀"), OVER_THE_BUDGET),
    "large words": script(doubling(20) + "echo $a $a; test $a; $a; cat < $a; echo > $a", {1}),
    "escapes": script(doubling(15, "'\\n'") + "echo -e $a $a $a > /dev/null;" * 20, SUCCEEDS),
    "4,000 files created": HostileCommand(("touch", *(f"/tmp/f{each}" for each in range(4000))), SUCCEEDS),
    "4,000 files listed": script("ls -l /tmp > /dev/null;" * 20, SUCCEEDS | OVER_THE_BUDGET),
    "4,000 files removed": HostileCommand(("rm", "-f", *(f"/tmp/f{each}" for each in range(4000))), SUCCEEDS),
    "4,000 missing files removed": HostileCommand(("rm", "-f", *(f"/tmp/g{each}" for each in range(4000))), SUCCEEDS),
    "a large file counted 100 times": script("wc -c" + " /tmp/large" * 100, OVER_THE_BUDGET),
    "a large file in a pipe": script("cat" + " /tmp/large" * 10 + " | cat | wc", OVER_THE_BUDGET),
    "the ends of large files": script("tail -n 999999 /tmp/large | head -n 999999 > /dev/null", SUCCEEDS),
    "a file that is appended to itself": script(
        "echo x > /tmp/a;" + "cat /tmp/a > /tmp/b; cat /tmp/b >> /tmp/a;" * 40 + "rm /tmp/a /tmp/b", {0, 137}
    ),
    "scripts that call each other": script(calling_each_other(), OVER_THE_BUDGET),
    "a script that calls itself": script("echo 'sh /tmp/r' > /tmp/r; sh /tmp/r", {2}),
    "input without a line": HostileCommand(("sh",), OVER_THE_BUDGET, lambda: b"x" * (24 << 20)),
    "many empty lines": HostileCommand(("sh",), OVER_THE_BUDGET, lambda: b"\n" * (1 << 20)),
    "many typed lines": HostileCommand(("cat",), SUCCEEDS, lambda: b"x\r" * (1 << 12), tty=True),
    "negations": script("test " + "! " * 30_000, {0, 1}),
    "a deep directory": script("mkdir -p " + "/a" * 2000 + "; mkdir -p " + "/a" * 30_000, {1}),
    "a long pipeline": script("echo a" + "|cat" * 2_000, SUCCEEDS),
    "a long list of words": script("echo " + "a " * 30_000, SUCCEEDS),
    "many quotes": script("echo " + '""' * 30_000, SUCCEEDS),
    "many redirections": script("echo a " + ">/tmp/q " * 2_000, SUCCEEDS),
    "a long argument": HostileCommand(("echo", "x" * 200_000), {"argument list too long"}),
    "a long number": script("exit " + "9" * 6000, {255}),
    "a wide date": HostileCommand(("date", "+%999999999d%-1-999999999d"), SUCCEEDS),
    "an archive with a long header": HostileCommand(("tar", "xf", "-", "-C", "/tmp"), {1}, long_header),
    "an archive of many files": HostileCommand(("tar", "xf", "-", "-C", "/tmp"), {1}, many_members),
    "a long sequence": script("seq 1 1000000000", {127}),
    "endless output": script("yes | head -c 10G", {0, 1}),
    "an endless loop": script("while true; do :; done", NOT_KNOWN),
    "a long sleep": script("sleep 1e9", {1}),
    "a fork bomb": script("f(){ f|f; };f", {127} | NOT_KNOWN),
    "nested parentheses": script("(" * 60_000, {127} | NOT_KNOWN),
    "nested substitutions": script("echo " + "$(" * 30_000, NOT_KNOWN),
    "braces and patterns": script("echo " + "{a,b}" * 10_000 + " /*/*/*", SUCCEEDS),
    "arithmetic": script("echo $((9**9**9))", NOT_KNOWN),
    "a here document": script("cat <<E\n" + "x\n" * 2_000 + "E", {0, 2, 127}),
}
