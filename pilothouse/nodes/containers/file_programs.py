"""Programs that read and write files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from pilothouse.apiserver.beside_the_loop import by_size
from pilothouse.nodes.containers.archives import tar
from pilothouse.nodes.containers.files import FileProblem
from pilothouse.nodes.containers.process import Process, Program


def _split(process: Process) -> tuple[str, list[str]]:
    """Return the letters of the options, and the other words."""
    options = [each[1:] for each in process.arguments if each.startswith("-") and len(each) > 1]
    return "".join(options), [each for each in process.arguments if not each.startswith("-") or each == "-"]


async def _cat(process: Process) -> int:
    code = 0
    for name in _split(process)[1] or ["-"]:
        if name == "-":
            while data := await process.stdin.read():
                await process.stdout.write(data)
            continue
        try:
            await process.stdout.write(process.container.files.read(process.path(name)))
        except FileProblem as problem:
            code = await process.complain(f"{name}: {problem}")
    return code


async def _ls(process: Process) -> int:
    files, (options, names) = process.container.files, _split(process)
    code = 0
    for name in names or ["."]:
        path = process.path(name)
        if not files.exists(path):
            code = await process.complain(f"{name}: No such file or directory")
        else:
            shown = files.names_in(path) if files.is_directory(path) and "d" not in options else [name]
            lines = (_listed(process, path, each) if "l" in options else each for each in shown)
            await process.say("".join(f"{line}\n" for line in lines))
    return code


def _listed(process: Process, directory: str, name: str) -> str:
    files = process.container.files
    path = f"{directory.rstrip('/')}/{name}"
    path = path if files.exists(path) else directory
    kind, size = ("drwxr-xr-x", 4096) if files.is_directory(path) else ("-rw-r--r--", len(files.read(path)))
    return f"{kind}    1 root     root     {size:>9} {datetime.now(UTC):%b %d %H:%M} {name}"


async def _mkdir(process: Process) -> int:
    options, names = _split(process)
    for name in names:
        try:
            process.container.files.make_directory(process.path(name), parents="p" in options)
        except FileProblem as problem:
            return await process.complain(f"can't create directory '{name}': {problem}")
    return 0


async def _rm(process: Process) -> int:
    files, (options, names) = process.container.files, _split(process)
    for name in names:
        path = process.path(name)
        if not files.exists(path) and "f" not in options:
            return await process.complain(f"can't remove '{name}': No such file or directory")
        if files.is_directory(path) and not {"r", "R"} & {*options}:
            return await process.complain(f"'{name}' is a directory")
        files.remove(path)
    return 0


async def _touch(process: Process) -> int:
    files = process.container.files
    for name in _split(process)[1]:
        try:
            if not files.exists(process.path(name)):
                files.write(process.path(name), b"")
        except FileProblem as problem:
            return await process.complain(f"{name}: {problem}")
    return 0


async def _test(process: Process) -> int:
    words = [each for each in process.arguments if each != "]"]
    return 0 if _holds(process, words) else 1


def _holds(process: Process, words: list[str]) -> bool:
    files = process.container.files
    match words:
        case ["!", *rest]:
            return not _holds(process, rest)
        case ["-d", name]:
            return files.is_directory(process.path(name))
        case ["-f", name]:
            return files.exists(process.path(name)) and not files.is_directory(process.path(name))
        case ["-e" | "-r" | "-w" | "-s", name]:
            return files.exists(process.path(name))
        case ["-n", text] | [text]:
            return bool(text)
        case ["-z", text]:
            return not text
        case [left, "=" | "==", right]:
            return left == right
        case [left, "!=", right]:
            return left != right
    return False


async def _tee(process: Process) -> int:
    data = await process.read_all()
    await process.stdout.write(data)
    for name in _split(process)[1]:
        try:
            process.container.files.write(process.path(name), data)
        except FileProblem as problem:
            return await process.complain(f"{name}: {problem}")
    return 0


async def _text(process: Process) -> bytes:
    """Return the contents of the files that are named, or the input. Raises FileProblem."""
    names = [each for each in _split(process)[1] if not each.isdigit()]
    if not names:
        return await process.read_all()
    return b"".join(process.container.files.read(process.path(name)) for name in names)


async def _head_or_tail(process: Process) -> int:
    count = next(_numbers(process.arguments), 10)
    try:
        text = await _text(process)
    except FileProblem as problem:
        return await process.complain(problem)
    await process.stdout.write(await by_size(len(text), _end_of, text, count, from_start=process.name == "head"))
    return 0


def _end_of(text: bytes, count: int, *, from_start: bool) -> bytes:
    lines = text.splitlines(keepends=True)
    return b"".join(lines[:count] if from_start else lines[max(0, len(lines) - count) :])


def _numbers(arguments: list[str]) -> Iterator[int]:
    found = (re.fullmatch(r"-?n?(\d{1,9})", each) for each in arguments)
    return (int(each[1]) for each in found if each)


async def _wc(process: Process) -> int:
    try:
        text = await _text(process)
    except FileProblem as problem:
        return await process.complain(problem)
    counts = await by_size(len(text), _counts, text)
    chosen = [letter for letter in counts if letter in _split(process)[0]] or [*counts]
    await process.say(" ".join(str(counts[letter]) for letter in chosen) + "\n")
    return 0


def _counts(text: bytes) -> dict[str, int]:
    return {"l": text.count(b"\n"), "w": len(text.split()), "c": len(text)}


async def _grep(process: Process) -> int:
    wanted = next((each for each in process.arguments if not each.startswith("-")), "").encode()
    text = await process.read_all()
    found = await by_size(len(text), _lines_with, text, wanted)
    await process.stdout.write(found)
    return 0 if found else 1


def _lines_with(text: bytes, wanted: bytes) -> bytes:
    return b"".join(line + b"\n" for line in text.splitlines() if wanted in line)


FILE_PROGRAMS: Final[dict[str, Program]] = {
    "[": _test,
    "cat": _cat,
    "grep": _grep,
    "head": _head_or_tail,
    "ls": _ls,
    "mkdir": _mkdir,
    "rm": _rm,
    "tail": _head_or_tail,
    "tar": tar,
    "tee": _tee,
    "test": _test,
    "touch": _touch,
    "wc": _wc,
}
