"""Writing files into a project: what is missing is made, and what a person wrote or changed is never touched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pilothouse.machinery.dataclass import dataclass
from pilothouse.scaffold.errors import ScaffoldError


@dataclass(frozen=True, slots=True)
class File:
    """A file as it is written, and as an earlier command may have written it when the project was another."""

    path: str
    """Below the project's folder."""
    content: str
    earlier: tuple[str, ...] = ()

    def is_edited(self, text: str) -> bool:
        return text != self.content and text not in self.earlier


def write(folder: Path, files: Sequence[File]) -> list[str]:
    """Make the files that are missing, and return a line about each file that is not simply as it was written.

    Raises ScaffoldError where a file cannot be written; then none of them is.
    """
    missing, edited = [], []
    for file in files:
        text = read(folder / file.path)
        if text is None:
            missing.append(file)
        elif file.is_edited(text):
            edited.append(file)
    _make(folder, missing)
    return [*(f"made  {file.path}" for file in missing), *(f"kept  {file.path}, which was edited" for file in edited)]


def read(path: Path) -> str | None:
    """Return what is in the file; None where there is none. Raises ScaffoldError."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ScaffoldError(f"cannot read {path}: {error}") from error


def _make(folder: Path, files: Iterable[File]) -> None:
    made: list[Path] = []
    try:
        for path, content in _opened(folder, files):
            made.append(path)
            path.write_text(content, encoding="utf-8")
    except OSError as error:
        for path in made:
            path.unlink(missing_ok=True)
        raise ScaffoldError(f"cannot write {error.filename}: {error.strerror}") from error


def _opened(folder: Path, files: Iterable[File]) -> Iterator[tuple[Path, str]]:
    """Yield each path once it is sure that nobody else has made a file there."""
    for file in files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("x").close()
        yield path, file.content
