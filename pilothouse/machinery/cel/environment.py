"""Compiling: from an expression and what it may name to its type, or to what is wrong with it in cel-go's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pilothouse.machinery.cel.messages import descriptor_pool, unmangled
from pilothouse.machinery.cel.signatures import Signature, signatures

DYN = "dyn"

_LIBRARIES = """
name: kubernetes
extensions:
- name: optional
- name: strings
  version: 2
- name: sets
- name: lists
- name: two-var-comprehensions
"""
_GO_NAMES = {
    "NULL": "null_type",
    "TIMESTAMP": "google.protobuf.Timestamp",
    "DURATION": "google.protobuf.Duration",
}
_STATUS = re.compile(r"^[A-Z_]+: |( \[[A-Z_]+\])$")
_IN_STRUCT = re.compile(r"(undefined field '[^']*') not found in struct '[^']*'")
_NATIVE_NAME = re.compile(
    r"(?<![\w.])(?:BOOL|BYTES|DOUBLE|DURATION|DYN|ERROR|INT|LIST|MAP|NULL|STRING|TIMESTAMP|TYPE|UINT)\b"
)


class CompilationFailed(Exception):
    """Its text is what upstream's compiler says, with the place in the expression."""


@dataclass(frozen=True, slots=True)
class Compiled:
    type: str
    """What the expression evaluates to, as Go prints it: bool, list(int), dyn."""
    native_type: str
    """The same in the form in which a variable is declared."""
    program: Any


@dataclass(frozen=True, slots=True)
class Environment:
    """The names that an expression may use."""

    variables: tuple[tuple[str, str], ...]
    patch_types: tuple[str, ...] = ()
    patch_fields: tuple[str, ...] = ()

    def compile(self, expression: str) -> Compiled:
        """Raises CompilationFailed."""
        try:
            program = _native_environment(self).compile(expression)
        except RuntimeError as error:
            raise CompilationFailed(_in_words_of_go(str(error))) from None
        native = program.return_type().name()
        return Compiled(go_type(native), _declarable(native), program)


def environment(variables: Mapping[str, str], *, types: tuple[str, ...], fields: tuple[str, ...]) -> Environment:
    return Environment(tuple(sorted(variables.items())), types, fields)


@lru_cache(maxsize=64)
def _native_environment(env: Environment) -> Any:
    from cel_expr_python import cel

    return cel.NewEnv(
        descriptor_pool=descriptor_pool(env.patch_types, env.patch_fields),
        config=cel.NewEnvConfigFromYaml(_LIBRARIES),
        variables={name: _native_type(kind) for name, kind in env.variables},
        extensions=[_kubernetes_functions()],
    )


@lru_cache(maxsize=1)
def _kubernetes_functions() -> Any:
    from cel_expr_python import cel

    overloads: dict[str, list[Any]] = {}
    for signature in signatures():
        overloads.setdefault(signature.function, []).append(_overload(signature))
    functions = [cel.FunctionDecl(name, declared) for name, declared in overloads.items()]
    return cel.CelExtension("kubernetes", functions)


def _overload(signature: Signature) -> Any:
    from cel_expr_python import cel

    return cel.Overload(
        signature.overload,
        return_type=_native_type(signature.result),
        parameters=[_native_type(kind) for kind in signature.parameters],
        is_member=signature.is_member,
    )


def _native_type(kind: str) -> Any:
    from cel_expr_python import cel

    return cel.Type(kind)


def go_type(native: str) -> str:
    """LIST<INT> → list(int)"""
    text = _NATIVE_NAME.sub(lambda found: _GO_NAMES.get(found[0], found[0].lower()), native)
    return unmangled(text.replace("<", "(").replace(">", ")"))


def _declarable(native: str) -> str:
    """Optionals and types of types cannot be declared: they may be anything."""
    if "optional_type" in native or "TYPE<" in native:
        return DYN
    return _NATIVE_NAME.sub(lambda found: "null_type" if found[0] == "NULL" else found[0].lower(), native)


def _in_words_of_go(message: str) -> str:
    return unmangled(_IN_STRUCT.sub(r"\1", _STATUS.sub("", message)))
