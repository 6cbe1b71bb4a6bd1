"""Files that are made from the server again and again. The first line has the sum of the rest: as long as it fits,
nobody has edited the file, and it may be replaced by what the server is now.
"""

from __future__ import annotations

from difflib import ndiff
from hashlib import sha256
from pathlib import Path

from pilothouse.scaffold.errors import ScaffoldError
from pilothouse.scaffold.files import File, read, write

_COMMENTS = {".yaml": ("# ", ""), ".md": ("<!-- ", " -->")}


def replace(folder: Path, path: str, body: str) -> list[str]:
    """Write the file, unless a person has edited it; return what was done, and for an edited file what it lacks.

    Raises ScaffoldError.
    """
    sealed, there = _sealed(path, body), read(folder / path)
    if there is None:
        return write(folder, [File(path, sealed)])
    if there == sealed:
        return []
    if not _is_untouched(path, there):
        lines = [line[2:] for line in ndiff(there.splitlines(), body.splitlines()) if line.startswith("+ ")]
        kept = f"kept  {path}, which was edited"
        return [f"{kept}. Add what it lacks:", "", *lines, ""] if lines else [kept]
    try:
        (folder / path).write_text(sealed, encoding="utf-8")
    except OSError as error:
        raise ScaffoldError(f"cannot write {error.filename}: {error.strerror}") from error
    return [f"made  {path} anew"]


def _sealed(path: str, body: str) -> str:
    opening, closing = _COMMENTS[Path(path).suffix]
    return f"{opening}Made by pilothouse. It is made anew until somebody edits it: {_sum(body)}{closing}\n{body}"


def _is_untouched(path: str, text: str) -> bool:
    return text == _sealed(path, text.partition("\n")[2])


def _sum(body: str) -> str:
    return sha256(body.encode()).hexdigest()[:16]
