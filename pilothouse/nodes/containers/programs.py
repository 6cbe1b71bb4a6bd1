"""Programs of every container, limited to common inspection commands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from pilothouse.nodes.containers.file_programs import FILE_PROGRAMS
from pilothouse.nodes.containers.process import Process, Program

_ECHO_OPTIONS: Final = re.compile(r"-[neE]+")
_DIRECTIVES: Final = re.compile(r"(%[sd%])")
_DATE_FIELDS: Final = re.compile(r"%[a-zA-Z%]")
_LONGEST_FORMAT: Final = 1024
_UNITS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_FOREVER: Final = 10 * 365 * 86400.0
_USERS: Final[dict[int, str]] = {0: "root", 65534: "nobody"}
_GROUPS: Final = _USERS


async def _echo(process: Process) -> int:
    words, end, escapes = process.arguments, "\n", False
    for first, word in enumerate(process.arguments):
        if not _ECHO_OPTIONS.fullmatch(word):
            words = words[first:]
            break
        end = "" if "n" in word else end
        escapes = escapes or "e" in word
    else:
        words = []
    text = " ".join(words)
    await process.say((_unescaped(text) if escapes else text) + end)
    return 0


def _unescaped(text: str) -> str:
    parts = (part.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r") for part in text.split("\\\\"))
    return "\\".join(parts)


async def _printf(process: Process) -> int:
    if not process.arguments:
        return await process.complain("usage: printf format [arguments]")
    values = iter(process.arguments[1:])
    parts = _DIRECTIVES.split(_unescaped(process.arguments[0]))
    for place in range(1, len(parts), 2):
        parts[place] = "%" if parts[place] == "%%" else next(values, "")
    await process.say("".join(parts))
    return 0


async def _env(process: Process) -> int:
    environment = process.container.environment
    for name in process.arguments:
        if name not in environment:
            return 1
        await process.say(f"{environment[name]}\n")
    if not process.arguments:
        await process.say_lines(f"{name}={value}" for name, value in environment.items())
    return 0


async def _hostname(process: Process) -> int:
    await process.say(f"{process.container.hostname}\n")
    return 0


async def _date(process: Process) -> int:
    now = datetime.now(UTC)
    chosen = next(
        (argument[1:] for argument in process.arguments if argument.startswith("+")), "%a %b %e %H:%M:%S UTC %Y"
    )
    known = {"%s": str(int(now.timestamp()))}
    text = _DATE_FIELDS.sub(lambda match: known.get(match[0]) or now.strftime(match[0]), chosen[:_LONGEST_FORMAT])
    await process.say(f"{text}\n")
    return 0


async def _true(process: Process) -> int:
    return 0


async def _false(process: Process) -> int:
    return 1


async def _sleep(process: Process) -> int:
    seconds = 0.0
    for text in process.arguments:
        match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([smhd]?)", text)
        if match is None and text not in ("inf", "infinity"):
            return await process.complain(f"invalid number '{text}'")
        seconds += float(match[1]) * _UNITS[match[2]] if match else _FOREVER
    await process.sleep(seconds)
    return 0


async def _pwd(process: Process) -> int:
    await process.say(f"{process.container.directory}\n")
    return 0


async def _whoami(process: Process) -> int:
    user = process.container.identity.user
    if user not in _USERS:
        return await process.complain(f"unknown uid {user}")
    await process.say(f"{_USERS[user]}\n")
    return 0


async def _id(process: Process) -> int:
    identity = process.container.identity
    options = {letter for word in process.arguments if word.startswith("-") for letter in word[1:]}
    numbers = {"u": (identity.user,), "g": (identity.group,), "G": identity.groups}
    for option, values in numbers.items():
        if option in options:
            names = _USERS if option == "u" else _GROUPS
            shown = (names.get(value, str(value)) if "n" in options else str(value) for value in values)
            await process.say(" ".join(shown) + "\n")
            return 0
    groups = ",".join(_numbered(group, _GROUPS) for group in identity.groups)
    user, group = _numbered(identity.user, _USERS), _numbered(identity.group, _GROUPS)
    await process.say(f"uid={user} gid={group} groups={groups}\n")
    return 0


def _numbered(number: int, names: Mapping[int, str]) -> str:
    return f"{number}({names[number]})" if number in names else str(number)


async def _uname(process: Process) -> int:
    full = f"Linux {process.container.hostname} 6.8.0-simulated #1 SMP x86_64 GNU/Linux"
    await process.say(f"{full if '-a' in process.arguments else 'Linux'}\n")
    return 0


PROGRAMS: Final[dict[str, Program]] = {
    **FILE_PROGRAMS,
    "date": _date,
    "echo": _echo,
    "env": _env,
    "false": _false,
    "hostname": _hostname,
    "id": _id,
    "printenv": _env,
    "printf": _printf,
    "pwd": _pwd,
    "sleep": _sleep,
    "true": _true,
    "uname": _uname,
    "whoami": _whoami,
}
