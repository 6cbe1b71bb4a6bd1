"""Exits of a running container.

The command of a container predicts its exit, for the scripts of tests and examples: `sleep 5`, `true`, `false`, `exit
3`, and lists of these and of `echo`, have a known exit; `while true` never exits. For other programs the restart policy
decides, but a script runs at least as long as it sleeps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, part
from pilothouse.nodes.behavior.model import LIVENESS, STARTUP, ContainerBehavior
from pilothouse.nodes.pods.probes import Probes
from pilothouse.nodes.pods.state import INIT, MAIN, Container, ContainerState
from pilothouse.nodes.pods.world import World

KILLED, OUT_OF_MEMORY = 137, "OOMKilled"
NOT_STARTED, START_ERROR = 128, "StartError"
SIGTERM = 143

FOREVER = float("inf")
_SHELLS = {"sh", "bash", "ash", "dash"}
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SEPARATORS = re.compile(r";|&&|\n")
_ENDLESS = re.compile(r"(?:^|[;&\n])[^\S\n]*+while\s++(?:true|:|\[ 1 \])[^\S\n]*+[;\n]\s*+do\b")
_BRANCHES = re.compile(r"\b(?:if|case|for|while|until)\b|\|\|")
_LEAVES = re.compile(r"\b(?:break|exit|return|kill)\b")
_PLAIN_ECHO = re.compile(r"""(?:[^'"\\>|]++|\\.|'[^'>|]*+'|"(?:[^"\\>|]++|\\.)*+")*+""")
_LONGEST, _LONGEST_SLEEPING, _LONGEST_KNOWN = 64 * 1024, 4096, 1024
"""Maximum characters of scripts that are searched for endless loops, searched for sleeps, and parsed."""
_MOST_PARTS = 64
_NO_QUOTES = str.maketrans("", "", "\"'")


@dataclass(frozen=True, slots=True)
class End:
    at: float
    exit_code: int
    reason: str
    failed_probe: str = ""
    """The probe that caused the kill."""
    output: str = ""
    """Output of the probe."""


def reason_of(exit_code: int) -> str:
    return "Error" if exit_code else "Completed"


def is_finite(container: Container, pod: Json) -> bool:
    """Return whether the container is expected to exit."""
    policy = part(pod, "spec").get("restartPolicy") or "Always"
    return container.kind == INIT or (container.kind == MAIN and policy != "Always")


def next_end(container: Container, state: ContainerState, pod: Json, world: World) -> End | None:
    """Return the earliest exit of a running container; None if it keeps running."""
    behavior = world.behavior(container.name)
    probes = Probes(container, state, behavior, world)
    ends = [*_own_end(container, state, pod, behavior, world), *_killed_by_probes(probes)]
    return min(ends, key=lambda end: end.at, default=None)


def crash_back_off(crashes: int, world: World) -> float:
    """Return the scaled back-off after so many crashes."""
    return world.config.scaled(crash_back_off_seconds(crashes))


def crash_back_off_seconds(crashes: int) -> float:
    """Return a kubelet's back-off: 0 after the first crash, then 10 s, doubled up to five minutes."""
    return 0.0 if crashes <= 1 else min(10.0 * 2 ** min(crashes - 2, 10), 300.0)


def _own_end(
    container: Container, state: ContainerState, pod: Json, behavior: ContainerBehavior, world: World
) -> Iterator[End]:
    is_configured = behavior.exit_after is not None or behavior.exit_code is not None or behavior.oom_killed
    if is_configured and (behavior.exit_times is None or state.restarts < behavior.exit_times):
        after = world.delay if behavior.exit_after is None else behavior.exit_after
        code = KILLED if behavior.oom_killed else behavior.exit_code or 0
        yield End(state.since + after, code, OUT_OF_MEMORY if behavior.oom_killed else reason_of(code))
    elif (exceeded := world.exceeded.get(container.name)) is not None:
        yield End(state.since + exceeded.after, KILLED, OUT_OF_MEMORY if exceeded.out_of_memory else reason_of(KILLED))
    elif (known := known_end(container.spec)) is not None:
        if known.after != FOREVER:
            at = state.since + max(known.after, world.delay)
            yield End(at, known.exit_code, reason_of(known.exit_code))
    elif is_finite(container, pod) and (seconds := shortest_run(container.spec)) != FOREVER:
        yield End(state.since + max(seconds, world.delay), 0, reason_of(0))


def _killed_by_probes(probes: Probes) -> Iterator[End]:
    for name in (STARTUP, LIVENESS):
        if (failure := probes.failure(name)) is not None:
            at = max(failure.at, probes.state.since + probes.world.delay)
            yield End(at, KILLED, "Error", name, failure.output)


@dataclass(frozen=True, slots=True)
class CommandEnd:
    after: float
    exit_code: int = 0


def known_end(spec: Json) -> CommandEnd | None:
    """Return the predicted exit of the container; FOREVER if the command never exits, None if unknown."""
    words = [*(spec.get("command") or ()), *(spec.get("args") or ())]
    if not words:
        return CommandEnd(FOREVER) if "pause" in (spec.get("image") or "").rsplit("/", 1)[-1] else None
    return None if _is_long(words) else _end_of("\0".join(words))


def shortest_run(spec: Json) -> float:
    """Return the total sleep seconds of an otherwise unknown script without branches."""
    words = [*(spec.get("command") or ()), *(spec.get("args") or ())]
    return 0.0 if _is_long(words) else _sleeps("\0".join(words))


def _is_long(words: Sequence[str]) -> bool:
    return len(words) > _MOST_PARTS or sum(map(len, words)) > _LONGEST


@bounded_cache(entries=512, key_bytes=512)
def _end_of(joined: str) -> CommandEnd | None:
    words = joined.split("\0")
    script = _script(words)
    return _end_of_command(words) if script is None else _end_of_script(script)


@bounded_cache(entries=512, key_bytes=512)
def _sleeps(joined: str) -> float:
    script = _script(joined.split("\0")) or ""
    if len(script) > _LONGEST_SLEEPING or _BRANCHES.search(script):
        return 0.0
    parts = (part.strip() for part in _SEPARATORS.split(script))
    ends = (_sleep(part.removeprefix("sleep").strip()) for part in parts if part.startswith("sleep "))
    return sum(end.after for end in ends if end is not None)


def _script(words: Sequence[str]) -> str | None:
    """Return the script of `sh -c`; None for other programs."""
    is_shell = _program(words) in _SHELLS and len(words) == 3 and words[1].startswith("-") and words[1].endswith("c")
    return words[2] if is_shell else None


def _end_of_script(script: str) -> CommandEnd | None:
    if _ENDLESS.search(script) and not _LEAVES.search(script):
        return CommandEnd(FOREVER)
    parts = _SEPARATORS.split(script.strip(), _MOST_PARTS) if len(script) <= _LONGEST_KNOWN else []
    if not 0 < len(parts) <= _MOST_PARTS:
        return None
    seconds, code = 0.0, 0
    for command in filter(None, map(str.strip, parts)):
        words = command.translate(_NO_QUOTES).split()
        is_plain = _program(words) != "echo" or ("$(" not in command and _PLAIN_ECHO.fullmatch(command))
        end = _end_of_command(words) if is_plain else None
        if end is None:
            return None
        seconds, code = seconds + end.after, end.exit_code
        if _program(words) == "exit":
            break
    return CommandEnd(seconds, code)


def _end_of_command(words: Sequence[str]) -> CommandEnd | None:
    program = _program(words)
    if program == "sleep" and len(words) == 2:
        return _sleep(words[1])
    if program == "exit" and len(words) <= 2:
        code = words[1] if words[1:] else "0"
        # 256 divides 10^8, so eight digits determine the remainder.
        return CommandEnd(0.0, int(code[-8:]) % 256) if code.isdecimal() else None
    if program == "pause":
        return CommandEnd(FOREVER)
    if program == "echo" and not any(">" in word or "|" in word or "$(" in word for word in words):
        return CommandEnd(0.0)
    return (
        {"true": CommandEnd(0.0), ":": CommandEnd(0.0), "false": CommandEnd(0.0, 1)}.get(program)
        if len(words) == 1
        else None
    )


def _sleep(text: str) -> CommandEnd | None:
    if text in ("inf", "infinity"):
        return CommandEnd(FOREVER)
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    return CommandEnd(float(match[1]) * _UNITS[match[2]]) if match else None


def _program(words: Sequence[str]) -> str:
    return words[0].rsplit("/", 1)[-1] if words else ""
