"""The files that a project is made of, as this package has them: texts with `$name` where a name belongs."""

from __future__ import annotations

from importlib.resources import files
from string import Template

_FOLDER = "templates"


def render(template: str, **names: str) -> str:
    """Return the text of a template with the names put in."""
    text = files("pilothouse.scaffold").joinpath(_FOLDER, f"{template}.template").read_text(encoding="utf-8")
    return Template(text).substitute(names)
