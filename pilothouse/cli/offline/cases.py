"""Test cases: a request, and the expected decision of policies and validation rules.

docs/how-to/offline-checks.md describes the file format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pilothouse.apiserver.authn.user import User
from pilothouse.cli.offline.documents import Document, NothingToRead
from pilothouse.cli.offline.manifests import Manifest, read_manifests
from pilothouse.machinery.codec.yaml import parse_yaml
from pilothouse.machinery.codec.yaml_nodes import YamlError
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json


class CaseError(Exception):
    """The file does not describe a case. `line` is the position of the problem."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Expectation:
    """Expected outcome. `message` and `warnings` are substrings, or regular expressions between slashes."""

    allowed: bool
    message: str = ""
    warnings: tuple[str, ...] = ()
    object: Any = None
    """Fields of the object after mutation."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    name: str
    line: int
    operation: str
    user: User
    expect: Expectation
    object: Manifest | None = None
    old: Manifest | None = None
    params: tuple[Manifest, ...] = ()
    subresource: str = ""

    @property
    def subject(self) -> Manifest:
        """Object of the request."""
        subject = self.object or self.old
        assert subject is not None
        return subject


@dataclass(frozen=True, slots=True)
class CaseFile:
    file: str
    stage: tuple[Manifest, ...]
    """Objects that exist before the cases: definitions, policies, bindings and other given objects."""
    cases: tuple[Case, ...]


def matches(expected: str, text: str) -> bool:
    """Whether the text contains the expected part, or matches the regular expression between slashes."""
    if len(expected) > 1 and expected.startswith("/") and expected.endswith("/"):
        return re.search(expected[1:-1], text) is not None
    return expected in text


_FILE_KEYS = frozenset({"crds", "policies", "given", "cases"})
_CASE_KEYS = frozenset({"name", "operation", "subresource", "user", "object", "oldObject", "params", "expect"})
_EXPECT_KEYS = frozenset({"allowed", "message", "warnings", "object"})
_USER_KEYS = frozenset({"name", "uid", "groups", "extra"})
_OPERATIONS = ("CREATE", "UPDATE", "DELETE")


def read_case_file(path: str) -> CaseFile:
    """Read and check a case file. Raises CaseError, NothingToRead."""
    try:
        data = Path(path).read_bytes()
        return _Reader(path, data, parse_yaml(data).value).read()
    except OSError as error:
        raise NothingToRead(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except YamlError as error:
        raise CaseError(error.line, str(error)) from None


class _Reader:
    def __init__(self, path: str, data: bytes, value: Any) -> None:
        self._document = Document.of(path, data)
        self._folder = Path(path).parent
        self._value = value

    def read(self) -> CaseFile:
        value = self._object(self._value, "", _FILE_KEYS)
        stage = [
            manifest for key in ("crds", "given", "policies") for manifest in self._manifests(value.get(key) or [], key)
        ]
        cases = value.get("cases")
        if not isinstance(cases, list) or not cases:
            raise self._error("cases", "cases must be a list with at least one case")
        read = tuple(self._case(case, f"cases[{at}]") for at, case in enumerate(cases))
        return CaseFile(self._document.file, tuple(stage), read)

    def _case(self, value: Any, path: str) -> Case:
        value = self._object(value, path, _CASE_KEYS)
        old = self._one(value.get("oldObject"), f"{path}.oldObject")
        new = self._one(value.get("object"), f"{path}.object")
        operation = value.get("operation") or ("CREATE" if old is None else "UPDATE" if new else "DELETE")
        if operation not in _OPERATIONS:
            raise self._error(f"{path}.operation", f"operation must be one of {', '.join(_OPERATIONS)}")
        if new is None and operation != "DELETE":
            raise self._error(path, f"a case of {operation} needs an object")
        if old is None and operation != "CREATE":
            raise self._error(path, f"a case of {operation} needs an oldObject")
        params = value.get("params") or []
        return Case(
            name=str(value.get("name") or path),
            line=self._document.line_of(path),
            operation=operation,
            user=self._user(value.get("user") or "tester", f"{path}.user"),
            expect=self._expectation(value.get("expect"), f"{path}.expect"),
            object=new,
            old=old,
            params=tuple(self._manifests(params if isinstance(params, list) else [params], f"{path}.params")),
            subresource=str(value.get("subresource") or ""),
        )

    def _expectation(self, value: Any, path: str) -> Expectation:
        value = self._object(value, path, _EXPECT_KEYS)
        if not isinstance(value.get("allowed"), bool):
            raise self._error(path, "expect.allowed must be true or false")
        warnings = tuple(map(str, value.get("warnings") or ()))
        return Expectation(value["allowed"], str(value.get("message") or ""), warnings, value.get("object"))

    def _user(self, value: Any, path: str) -> User:
        if isinstance(value, str):
            return User(value)
        value = self._object(value, path, _USER_KEYS)
        extra = {key: tuple(values) for key, values in (value.get("extra") or {}).items()}
        return User(str(value.get("name") or ""), str(value.get("uid") or ""), tuple(value.get("groups") or ()), extra)

    def _manifests(self, values: Iterable[Any], path: str) -> list[Manifest]:
        """Return the objects of a list of file names, folder names and inline objects."""
        manifests: list[Manifest] = []
        for at, value in enumerate(values):
            manifests += (
                self._from_files(value, path) if isinstance(value, str) else [self._inline(value, f"{path}[{at}]")]
            )
        return manifests

    def _one(self, value: Any, path: str) -> Manifest | None:
        if value is None:
            return None
        if not isinstance(value, str):
            return self._inline(value, path)
        manifests = self._from_files(value, path)
        if len(manifests) != 1:
            raise self._error(path, f"{value} has {len(manifests)} objects, expected one")
        return manifests[0]

    def _from_files(self, name: str, path: str) -> list[Manifest]:
        named = self._folder / name
        if named.exists() and not named.is_file() and not named.is_dir():
            raise self._error(path, f"{name} is neither a file nor a folder")
        results = list(read_manifests([str(named)]))
        for result in results:
            if not isinstance(result, Manifest):
                problem = result.findings[0]
                raise self._error(path, f"{problem.file}:{problem.line}: {problem.message}")
        return [result for result in results if isinstance(result, Manifest)]

    def _inline(self, value: Any, path: str) -> Manifest:
        if not isinstance(value, dict) or not all(isinstance(value.get(key), str) for key in ("apiVersion", "kind")):
            raise self._error(path, "expected an object with apiVersion and kind, or the name of a file")
        return Manifest(self._document, value, path)

    def _object(self, value: Any, path: str, keys: frozenset[str]) -> Json:
        if not isinstance(value, dict):
            raise self._error(path, f"{path or 'the file'} must be an object with some of {', '.join(sorted(keys))}")
        if unknown := sorted(set(value) - keys):
            field = f"{path}.{unknown[0]}".lstrip(".")
            raise self._error(field, f"{field} is not a known field; known fields: {', '.join(sorted(keys))}")
        return value

    def _error(self, path: str, message: str) -> CaseError:
        return CaseError(self._document.line_of(path), message)
