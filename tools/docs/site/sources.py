"""Pages that show what links to the code lead to, so that the site is whole by itself, and about this very version."""

from __future__ import annotations

import ast
from pathlib import Path, PurePosixPath

from tools.docs.pages import ROOT

FOLDER = "source"
_NOT_SEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
_LANGUAGES = {".py": "python", ".pyi": "python", ".toml": "toml", ".yaml": "yaml", ".ts": "ts", ".tsx": "tsx"}


def page_for(target: Path) -> PurePosixPath:
    """Return where in the site the page of a file or folder of the repository is."""
    path = PurePosixPath(target.relative_to(ROOT).as_posix())
    return PurePosixPath(FOLDER) / (path / "index.md" if target.is_dir() else path.with_name(path.name + ".md"))


def text_for(target: Path) -> str:
    """Return the page of a file or folder. Markdown is shown as it is, with its links taken out of force.

    Searches leave these pages out: prose is found before sources.
    """
    name = target.relative_to(ROOT).as_posix()
    if target.is_dir():
        return f"{_NOT_SEARCHED}# {name}/\n\n{_listing(target)}\n"
    text = target.read_text(encoding="utf-8")
    fence = "````" if "```" in text else "```"
    language = _LANGUAGES.get(target.suffix, "markdown" if target.suffix == ".md" else "text")
    return f'{_NOT_SEARCHED}# {name}\n\n{fence}{language} linenums="1"\n{text.rstrip()}\n{fence}\n'


def _listing(folder: Path) -> str:
    entries = sorted(path for path in folder.iterdir() if not path.name.startswith((".", "__pycache__")))
    rows = (f"| `{path.name}{'/' if path.is_dir() else ''}` | {_first_line(path)} |" for path in entries)
    return "\n".join(["| | |", "|---|---|", *rows])


def _first_line(path: Path) -> str:
    """Return what a module says of itself; a package says it in its `__init__.py`."""
    module = path / "__init__.py" if path.is_dir() else path
    if module.suffix != ".py" or not module.exists():
        return ""
    said = ast.get_docstring(ast.parse(module.read_text())) or ""
    return said.partition("\n\n")[0].replace("\n", " ").replace("|", "\\|").replace("<", "&lt;")
