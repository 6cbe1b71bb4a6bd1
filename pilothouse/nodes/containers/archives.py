"""tar, as kubectl cp uses it: files from the input, or to the output."""

from __future__ import annotations

import io
import posixpath
import tarfile
from typing import Final

from pilothouse.apiserver.beside_the_loop import by_size
from pilothouse.controllers.in_turns import in_turns
from pilothouse.nodes.containers.files import FileProblem, Files
from pilothouse.nodes.containers.process import Process

_IGNORED: Final = "--"


async def tar(process: Process) -> int:
    """Knows `tar cf - FILE…` and `tar xmf - [-C DIRECTORY]`, in whatever order their options come."""
    letters, directory, names = _read(process)
    base = process.path(directory or ".")
    try:
        if "x" in letters:
            return await _extract(process, await process.read_all(), base)
        if "c" in letters and names:
            return await _create(process, base, names)
    except FileProblem as problem:
        return await process.complain(problem)
    except tarfile.TarError as problem:
        return await process.complain(f"corrupted archive: {problem}")
    return await process.complain("only archives on stdin and stdout are supported")


def _read(process: Process) -> tuple[str, str, list[str]]:
    """Return the letters of the options, the directory to work in, and the names of files."""
    words = iter(process.arguments)
    letters, directory, names = "", "", list[str]()
    for position, word in enumerate(words):
        if word == "-C":
            directory = next(words, "")
        elif word.startswith(_IGNORED) or word == "-":
            continue
        elif word.startswith("-") or position == 0:
            letters += word.lstrip("-")
        else:
            names.append(word)
    return letters, directory, names


async def _extract(process: Process, data: bytes, base: str) -> int:
    async for member, contents in in_turns(await by_size(len(data), _members, data)):
        path = posixpath.normpath(posixpath.join(base, member.name.lstrip("/")))
        files = process.container.files
        if member.isdir():
            files.make_directory(path, parents=True)
        elif contents is not None:
            files.make_directory(posixpath.dirname(path), parents=True)
            files.write(path, contents)
    return 0


def _members(data: bytes) -> list[tuple[tarfile.TarInfo, bytes | None]]:
    """Return the files with their contents, and the directories. What is compressed or sparse could become anything."""
    found: list[tuple[tarfile.TarInfo, bytes | None]] = []
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for member in archive:
            plain = member.isfile() and not member.issparse() and member.size <= len(data)
            file = archive.extractfile(member) if plain else None
            found.append((member, None if file is None else file.read()))
    return found


async def _create(process: Process, base: str, names: list[str]) -> int:
    files, chosen, code = process.container.files, list[tuple[str, bytes | None]](), 0
    for name in names:
        path = posixpath.normpath(posixpath.join(base, name))
        if not files.exists(path):
            code = await process.complain(f"{name}: Cannot stat: No such file or directory")
        for each in files.walk(path):
            shown = posixpath.join(name, posixpath.relpath(each, path)) if each != path else name
            chosen.append((shown.lstrip("/"), _contents(files, each)))
    await process.stdout.write(await by_size(sum(len(contents or b"") for _, contents in chosen), _archive, chosen))
    return 2 if code else 0


def _contents(files: Files, path: str) -> bytes | None:
    return None if files.is_directory(path) else files.read(path)


def _archive(entries: list[tuple[str, bytes | None]]) -> bytes:
    """Return the archive; entries without contents are directories."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, contents in entries:
            member = tarfile.TarInfo(name)
            member.mode = 0o755 if contents is None else 0o644
            if contents is None:
                member.type = tarfile.DIRTYPE
            member.size = len(contents or b"")
            archive.addfile(member, io.BytesIO(contents or b""))
    return target.getvalue()
