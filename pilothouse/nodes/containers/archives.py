"""tar, as kubectl cp uses it: extracts from stdin, or archives to stdout."""

from __future__ import annotations

import io
import posixpath
import tarfile
from typing import Final

from pilothouse.nodes.containers.files import FileProblem
from pilothouse.nodes.containers.process import Kept, Process

_IGNORED: Final = "--"
_MAX_HEADERS: Final = 64 * 1024
"""Maximum header bytes per file."""
_BAD_ARCHIVE: Final = (tarfile.TarError, RecursionError, OverflowError, ValueError)


async def tar(process: Process) -> int:
    """Implement `tar cf - FILE…` and `tar xmf - [-C DIRECTORY]`, with options in any order."""
    letters, directory, names = _read(process)
    base = process.path(directory or ".")
    try:
        if "x" in letters:
            return await _extract(process, base)
        if "c" in letters and names:
            return await _create(process, base, names)
    except FileProblem as problem:
        return await process.complain(problem)
    except _BAD_ARCHIVE as problem:
        return await process.complain(f"corrupted archive: {problem}")
    return await process.complain("only archives on stdin and stdout are supported")


def _read(process: Process) -> tuple[str, str, list[str]]:
    """Return option letters, working directory and file names."""
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


class _Headers(io.BytesIO):
    """An archive with bounded headers: extension headers may precede each header."""

    allowed = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(self.allowed + 1 if size is None or size < 0 else min(size, self.allowed + 1))
        self.allowed -= len(data)
        if self.allowed < 0:
            raise tarfile.ReadError("headers too long")
        return data


async def _extract(process: Process, base: str) -> int:
    kept, files = Kept(process.budget), process.container.files
    while piece := await process.stdin.read():
        await kept.write(piece)
    data = kept.taken()
    headers = _Headers(data)
    headers.allowed = _MAX_HEADERS
    with tarfile.open(fileobj=headers, mode="r:") as archive:
        while (member := archive.next()) is not None:
            archive.members.clear()  # type: ignore[attr-defined]  # the archive remembers all members
            headers.allowed = _MAX_HEADERS
            if member.size < 0:
                raise tarfile.ReadError("negative size")
            await process.budget.spend(data=min(member.size, len(data)))
            path = posixpath.normpath(posixpath.join(base, member.name.lstrip("/")))
            if member.isdir():
                files.make_directory(path, parents=True)
            elif member.isfile() and not member.issparse():  # a sparse file could expand without bound
                files.make_directory(posixpath.dirname(path), parents=True)
                files.write(path, data[member.offset_data : member.offset_data + member.size])
    kept.release()
    return 0


async def _create(process: Process, base: str, names: list[str]) -> int:
    files, code = process.container.files, 0
    for name in names:
        path = posixpath.normpath(posixpath.join(base, name))
        if not files.exists(path):
            code = await process.complain(f"{name}: Cannot stat: No such file or directory")
        for entry in files.walk(path):
            await process.budget.spend()
            member = posixpath.join(name, posixpath.relpath(entry, path)) if entry != path else name
            await _add(process, member.lstrip("/"), None if files.is_directory(entry) else files.read(entry))
    await process.stdout.write(bytes(2 * tarfile.BLOCKSIZE))
    return 2 if code else 0


async def _add(process: Process, name: str, contents: bytes | None) -> None:
    """Write an archive entry; contents None = a directory."""
    member = tarfile.TarInfo(name)
    member.mode = 0o755 if contents is None else 0o644
    member.type = tarfile.DIRTYPE if contents is None else tarfile.REGTYPE
    member.size = len(contents or b"")
    await process.stdout.write(member.tobuf(tarfile.GNU_FORMAT, errors="replace"))
    await process.stdout.write(contents or b"")
    await process.stdout.write(bytes(-member.size % tarfile.BLOCKSIZE))
