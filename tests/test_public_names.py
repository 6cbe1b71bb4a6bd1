"""The names that people import: all of them are there, say what they are, and show themselves in an example that runs.

Examples may await. They find a running server as `api` and a client of it as `client`.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from whole_server import whole_server

from pilothouse.testing import API, StoredSnapshot

PACKAGES = (
    "pilothouse.apiserver",
    "pilothouse.builder",
    "pilothouse.client",
    "pilothouse.errors",
    "pilothouse.operator",
    "pilothouse.testing",
)
FOR_PEOPLE = PACKAGES[1:]
"""Those whose methods are in the reference, too."""
CONSTANTS = {
    *("AGE", "NAME", "NORMAL", "SCHEMALESS_PATCHES", "UNSTRUCTURED", "WARNING"),
    *("Errors", "Filter", "Handler", "Json"),
    *("AnnotationChanged", "GenerationChanged", "LabelChanged", "ResourceVersionChanged"),
}
"""Values and aliases of types, which have no docstring of their own."""


def _names() -> Iterator[tuple[str, str]]:
    for package in PACKAGES:
        for name in import_module(package).__all__:
            yield package, name


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fresh() -> AsyncIterator[tuple[API, StoredSnapshot]]:
    """One server for all examples, and its state before any of them."""
    async with whole_server() as api:
        yield api, await api.snapshot()


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("package", "name"), [*_names()])
async def test_a_public_name_has_an_example_that_runs(
    package: str, name: str, fresh: tuple[API, StoredSnapshot], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    value = getattr(import_module(package), name)
    if name in CONSTANTS:
        return
    inherited = inspect.isclass(value) and "__doc__" not in vars(value)
    documentation = None if inherited else inspect.getdoc(value)
    assert documentation, f"{package}.{name} has no docstring of its own"
    examples = doctest.DocTestParser().get_examples(documentation)
    assert examples, f"the docstring of {package}.{name} has no example"
    async with AsyncExitStack() as running:
        known = await _known_to(examples, fresh, running)
        for example in examples:
            printed = await _run(example.source, known)
            wanted, options = example.want, doctest.ELLIPSIS
            assert doctest.OutputChecker().check_output(wanted, printed, options), (
                f"{example.source}printed {printed!r}, not {wanted!r}"
            )


async def _known_to(
    examples: list[doctest.Example], fresh: tuple[API, StoredSnapshot], running: AsyncExitStack
) -> dict[str, Any]:
    """Return the names that examples find: a server without objects, and a client, where an example uses them."""
    known: dict[str, Any] = {"__name__": "__main__"}
    if any(re.search(r"\b(api|client)\b(?! import)", example.source) for example in examples):
        api, empty = fresh
        await api.restore(empty)
        known["api"] = api
        known["client"] = await running.enter_async_context(api.client(in_process=True))
    return known


async def _run(source: str, known: dict[str, Any]) -> str:
    """Run one example, which may await, and return what a prompt would print."""
    code = compile(source, "<example>", "single", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with redirect_stdout(StringIO()) as printed:
        result = eval(code, known)
        if code.co_flags & inspect.CO_COROUTINE:
            await result
    return printed.getvalue()


@pytest.mark.parametrize("package", FOR_PEOPLE)
def test_every_method_of_a_public_class_says_what_it_does(package: str) -> None:
    module = import_module(package)
    classes = [value for name in module.__all__ if inspect.isclass(value := getattr(module, name))]
    assert [f"{one.__name__}.{name}" for one in classes for name in dir(one) if _says_nothing(one, name)] == []


def _says_nothing(of: type[Any], name: str) -> bool:
    """Whether that is a method or property of ours, and neither it nor what it overrides has a docstring."""
    member = inspect.getattr_static(of, name)
    member = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    ours = inspect.isfunction(member) and str(member.__module__).startswith("pilothouse")
    return ours and not name.startswith("_") and not inspect.getdoc(getattr(of, name))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_that_is_not_there_is_missing_as_anywhere_else(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nonsense'"):
        _ = import_module(package).nonsense


@pytest.mark.parametrize("package", PACKAGES)
def test_the_names_are_listed(package: str) -> None:
    module = import_module(package)
    assert set(module.__all__) <= set(dir(module))
