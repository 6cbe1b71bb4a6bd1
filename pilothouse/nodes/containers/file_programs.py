"""Programs that read and write files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from pilothouse.nodes.containers.archives import tar
from pilothouse.nodes.containers.budget import PIECE
from pilothouse.nodes.containers.files import FileProblem
from pilothouse.nodes.containers.process import Input, Kept, Lines, Process, Program

_LINE_END: Final = re.compile(rb"\n")


def _split(process: Process) -> tuple[str, list[str]]:
    """Return option letters and operands."""
    options = [argument[1:] for argument in process.arguments if argument.startswith("-") and len(argument) > 1]
    return "".join(options), [
        argument for argument in process.arguments if not argument.startswith("-") or argument == "-"
    ]


async def _cat(process: Process) -> int:
    code = 0
    for name in _split(process)[1] or ["-"]:
        source = process.source([] if name == "-" else [name])
        try:
            while data := await source.read():
                await process.stdout.write(data)
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
            entries = files.names_in(path) if files.is_directory(path) and "d" not in options else [name]
            await process.budget.spend(steps=len(entries))
            await process.say_lines(_listed(process, path, entry) if "l" in options else entry for entry in entries)
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
        await process.budget.spend(data=len(name))
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
        await process.budget.spend(steps=1 + files.remove(path))
    return 0


async def _touch(process: Process) -> int:
    files = process.container.files
    for name in _split(process)[1]:
        await process.budget.spend()
        try:
            if not files.exists(process.path(name)):
                files.write(process.path(name), b"")
        except FileProblem as problem:
            return await process.complain(f"{name}: {problem}")
    return 0


async def _test(process: Process) -> int:
    words = [argument for argument in process.arguments if argument != "]"]
    negations = next((place for place, word in enumerate(words) if word != "!"), len(words))
    return 0 if _holds(process, words[negations:]) ^ bool(negations % 2) else 1


def _holds(process: Process, words: list[str]) -> bool:
    files = process.container.files
    match words:
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
    kept = Kept(process.budget)
    while data := await process.stdin.read():
        await process.stdout.write(data)
        await kept.write(data)
    contents = kept.taken()
    for name in _split(process)[1]:
        await process.budget.spend(data=len(contents))
        try:
            process.container.files.write(process.path(name), contents)
        except FileProblem as problem:
            return await process.complain(f"{name}: {problem}")
    kept.release()
    return 0


def _source(process: Process) -> Input:
    """Return the contents of the named files, or stdin."""
    return process.source(name for name in _split(process)[1] if not name.isdigit())


async def _head(process: Process) -> int:
    left, source = _count(process), _source(process)
    try:
        while left > 0 and (piece := await source.read()):
            if (count := piece.count(b"\n")) >= left:
                ends = (match.end() for match in _LINE_END.finditer(piece))
                piece = piece[: next(islice(ends, left - 1, None))]
            await process.stdout.write(piece)
            left -= count
    except FileProblem as problem:
        return await process.complain(problem)
    return 0


async def _tail(process: Process) -> int:
    kept, source, count = Kept(process.budget), _source(process), _count(process)
    try:
        while data := await source.read():
            await kept.write(data)
    except FileProblem as problem:
        return await process.complain(problem)
    place = len(kept.data) - 1 if kept.data.endswith(b"\n") else len(kept.data)
    for _ in range(count):
        await process.budget.spend(steps=0)
        place = kept.data.rfind(b"\n", 0, place)
        if place < 0:
            break
    if count:
        await process.stdout.write(bytes(kept.data[place + 1 :]))
    kept.release()
    return 0


def _count(process: Process) -> int:
    return next(_numbers(process.arguments), 10)


def _numbers(arguments: list[str]) -> Iterator[int]:
    matches = (re.fullmatch(r"-?n?(\d{1,9})", argument) for argument in arguments)
    return (int(match[1]) for match in matches if match)


async def _wc(process: Process) -> int:
    source, counts, in_word = _source(process), {"l": 0, "w": 0, "c": 0}, False
    chosen = [letter for letter in counts if letter in _split(process)[0]] or [*counts]
    try:
        while piece := await source.read():
            counts["l"] += piece.count(b"\n")
            counts["c"] += len(piece)
            if "w" in chosen:
                counts["w"] += len(piece.split()) - (in_word and not piece[:1].isspace())
                in_word = not piece[-1:].isspace()
    except FileProblem as problem:
        return await process.complain(problem)
    await process.say(" ".join(str(counts[letter]) for letter in chosen) + "\n")
    return 0


async def _grep(process: Process) -> int:
    """Search for fixed strings; regular expressions are not supported."""
    pattern = next((argument for argument in process.arguments if not argument.startswith("-")), "").encode(
        "utf-8", "replace"
    )
    lines, matching, code = Lines(process.stdin, process.budget), bytearray(), 1
    while line := await lines.read():
        line = line.removesuffix(b"\n")
        if pattern in line:
            code = 0
            matching += line + b"\n"
        if len(matching) >= PIECE:
            await process.stdout.write(bytes(matching))
            matching.clear()
    await process.stdout.write(bytes(matching))
    return code


FILE_PROGRAMS: Final[dict[str, Program]] = {
    "[": _test,
    "cat": _cat,
    "grep": _grep,
    "head": _head,
    "ls": _ls,
    "mkdir": _mkdir,
    "rm": _rm,
    "tail": _tail,
    "tar": tar,
    "tee": _tee,
    "test": _test,
    "touch": _touch,
    "wc": _wc,
}
