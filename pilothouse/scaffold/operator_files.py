"""Files of an operator's manifests: rendered, written and compared."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path

from pilothouse.scaffold.files import read
from pilothouse.scaffold.manifests import as_yaml
from pilothouse.scaffold.names import ScaffoldError
from pilothouse.scaffold.operator_manifests import FILES, Operator

_HEADER = "# Generated from the code by `pilothouse generate`: change the code, and generate again.\n"


def rendered(operator: Operator, part: str) -> dict[str, str]:
    """Return the files of a part: file name -> YAML."""
    files = operator.files()
    return {name: _HEADER + as_yaml(objects) for name, objects in files.items() if part in ("manifests", FILES[name])}


def write_files(folder: Path, files: Mapping[str, str], part: str) -> list[str]:
    """Write changed files, remove generated files without content, and return a line for each. Raises ScaffoldError."""
    lines = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            before = read(folder / name)
            if before != text:
                (folder / name).write_text(text, encoding="utf-8")
                lines.append(f"{'created' if before is None else 'updated'}  {folder / name}")
        for name in _obsolete(folder, files, part):
            (folder / name).unlink()
            lines.append(f"removed  {folder / name}")
    except OSError as error:
        raise ScaffoldError(f"cannot write {error.filename}: {error.strerror}") from error
    return lines


def differences(folder: Path, files: Mapping[str, str], part: str) -> list[str]:
    """Return a unified diff from the folder to the files; empty if nothing would change. Raises ScaffoldError."""
    changed = {**files, **dict.fromkeys(_obsolete(folder, files, part), "")}
    return [
        line
        for name, text in sorted(changed.items())
        for line in unified_diff(
            (read(folder / name) or "").splitlines(keepends=True),
            text.splitlines(keepends=True),
            str(folder / name),
            f"{folder / name} (from the code)",
        )
    ]


def _obsolete(folder: Path, files: Mapping[str, str], part: str) -> list[str]:
    """Return the generated files of the part that the code no longer needs."""
    return [
        name
        for name, of_part in FILES.items()
        if part in ("manifests", of_part) and name not in files and (read(folder / name) or "").startswith(_HEADER)
    ]
