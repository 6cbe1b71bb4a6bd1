"""The public Python API, from its docstrings."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

from tools.docs.reference.markdown import code, page, table

PACKAGES = {
    "pilothouse.testing": "servers for tests",
    "pilothouse.client": "clients, informers, work queues and controllers for any cluster",
    "pilothouse.operator": "operators: kinds, reconcilers and managers",
    "pilothouse.builder": "API servers of your own",
    "pilothouse.errors": "every error of the API",
}
_TASKS = Path(__file__).with_name("python_tasks.toml")
_EXAMPLE = re.compile(r"(?:^>>> .*\n(?:(?!\n).*\n)*)+", re.MULTILINE)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_TESTED = (
    "`tests/test_public_names.py` runs every example, with `api` as a running server and `client` as its"
    " client; `tests/docs/test_reference.py` compares the page with the docstrings."
)


def python_page(package: str) -> str:
    """Return the page of a package: its purpose, then by task each public name with its docstring and its methods."""
    module = import_module(package)
    by_task = tasks(package)
    names = [name for task in by_task.values() for name in task]
    headings = {name: _heading(name, names) for name in names}
    links = {name: f"[{name}](#{headings[name].lower().replace(' ', '-')})" for name in names}
    about = (inspect.getdoc(module) or "").partition("\n\n")[0]
    rows = [[task, ", ".join(links[name] for name in of_task)] for task, of_task in by_task.items()]
    parts = [about, table(["task", "names"], rows)]
    for task, of_task in by_task.items():
        parts.append(f"## {task}")
        for name in of_task:
            parts += [f"### {headings[name]}", *_name(package, name, getattr(module, name))]
    return page(f"{package}: {PACKAGES[package]}", *parts, tested=_TESTED)


def tasks(package: str) -> dict[str, list[str]]:
    """Return the public names of a package by task. Raises ValueError for a name without a task, or with two."""
    by_task: dict[str, list[str]] = tomllib.loads(_TASKS.read_text())[package]
    listed, public = [name for names in by_task.values() for name in names], import_module(package).__all__
    if wrong := {*listed} ^ {*public} | {name for name in listed if listed.count(name) > 1}:
        raise ValueError(f"{_TASKS.name}: {package} has these names in no task, in two, or not at all: {sorted(wrong)}")
    return by_task


def _heading(name: str, names: list[str]) -> str:
    """Return the name, and what it is where another differs in its capitals only, so that anchors differ."""
    same = [other for other in names if other.lower() == name.lower()]
    return f"{name} function" if len(same) > 1 and name.islower() else name


def _name(package: str, name: str, value: Any) -> Iterator[str]:
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        yield f"`{package}.{name}`, a value or the name of a type: `{_ADDRESS.sub('', str(value))[:100]}`"
        return
    kind = "class" if inspect.isclass(value) else "async def" if inspect.iscoroutinefunction(value) else "def"
    yield f"```text\n{kind} {name}{_signature(value)}\n```"
    yield prose(inspect.getdoc(value) or "")
    if rows := [*_members(value)]:
        yield table(["", ""], rows)


def _members(value: Any) -> Iterator[list[str]]:
    if not inspect.isclass(value):
        return
    ours = [vars(one) for one in reversed(value.__mro__) if one.__module__.startswith("pilothouse")]
    for name, member in sorted({name: member for one in ours for name, member in one.items()}.items()):
        plain = getattr(member, "__func__", member)
        said = inspect.getdoc(plain.fget if isinstance(plain, property) else plain) if not name.startswith("_") else ""
        if said and (inspect.isfunction(plain) or isinstance(plain, property)):
            prefix = "async " if inspect.iscoroutinefunction(plain) else ""
            shown = name if isinstance(plain, property) else f"{prefix}{name}{_signature(plain, line=0)}"
            first = prose(said.partition("\n\n")[0])
            yield [code(shown), first if ">>>" not in first else ""]


def _signature(value: Any, *, line: int = 100) -> str:
    """Return parameters and result with their types, on several lines if longer than `line` (0: on one line)."""
    if inspect.isclass(value) and issubclass(value, Enum):
        return ""  # Python's own, and another one in each version
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(…)"
    types = {field.name: field.type for field in fields(value)} if is_dataclass(value) else {}
    items, star = [], False
    for item in signature.parameters.values():
        if item.kind is item.KEYWORD_ONLY and not star:
            items.append("*")
        star = star or item.kind in (item.KEYWORD_ONLY, item.VAR_POSITIONAL)
        if item.name not in ("self", "cls"):
            typed = item.annotation is not item.empty
            items.append(_parameter(item if typed else item.replace(annotation=types.get(item.name, item.empty))))
    result = "" if inspect.isclass(value) else _type(signature.return_annotation)
    returned = f" -> {result}" if result else ""
    whole = f"({', '.join(items)}){returned}"
    if not line or len(whole) <= line:
        return whole
    return "".join(["(\n", *(f"    {item},\n" for item in items), f"){returned}"])


def _parameter(item: inspect.Parameter) -> str:
    stars = "*" if item.kind is item.VAR_POSITIONAL else "**" if item.kind is item.VAR_KEYWORD else ""
    type_ = _type(item.annotation)
    shown = f"{stars}{item.name}: {type_}" if type_ else f"{stars}{item.name}"
    if item.default is item.empty:
        return shown
    return f"{shown} = {_default(item.default)}" if type_ else f"{shown}={_default(item.default)}"


def _type(annotation: Any) -> str:
    """Return an annotation as the source has it; empty if there is none."""
    if annotation is inspect.Signature.empty:
        return ""
    return annotation.strip("'\"") if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _default(value: Any) -> str:
    """Return a default value as code; … for objects."""
    if isinstance(value, Enum):
        return str(value)
    plain = value is None or isinstance(value, (bool, int, float, str, bytes)) or value in ((), {}, [])
    return repr(value) if plain else "…"


def prose(docstring: str) -> str:
    """Return a docstring as Markdown: its examples between fences, and nothing that is indented."""
    parts = []
    at = 0
    text = docstring + "\n"
    for example in _EXAMPLE.finditer(text):
        parts += [_plain(text[at : example.start()]), f"```pycon\n{example[0].rstrip()}\n```"]
        at = example.end()
    return "\n\n".join(filter(None, [*parts, _plain(text[at:])]))


def _plain(text: str) -> str:
    return re.sub(r"^ {2,}", "", text.strip(), flags=re.MULTILINE).replace("<", "&lt;")
