"""Compiling: from an expression and what it may name to its type, or to what is wrong with it in cel-go's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.cel.messages import descriptor_pool, new_descriptor_pool
from pilothouse.machinery.cel.signatures import Signature, signatures
from pilothouse.machinery.cel.syntax import SyntaxTree
from pilothouse.machinery.cel.wording import declarable_type, go_type, in_words_of_go
from pilothouse.machinery.dataclass import dataclass

LIBRARIES = """
name: kubernetes
extensions:
- name: optional
- name: strings
  version: 2
- name: sets
- name: lists
- name: two-var-comprehensions
"""
BINDINGS = "- name: bindings\n"
_HAS_LITERALS = re.compile(r"matches|duration|timestamp|[\[{]")


class CompilationFailed(Exception):
    """Its text is what upstream's compiler says, with the place in the expression."""


@dataclass(frozen=True, slots=True)
class Compiled:
    type: str
    """The type of the expression's value, as Go prints it: bool, list(int), dyn."""
    native_type: str
    """The same in the form in which a variable is declared."""
    program: Any


@dataclass(frozen=True, slots=True)
class Environment:
    """The names that an expression may use."""

    variables: tuple[tuple[str, str], ...]
    patch_types: tuple[str, ...] = ()
    patch_fields: tuple[str, ...] = ()
    bindings: bool = False
    """Whether cel.bind() can be used."""

    def compile(self, expression: str) -> Compiled:
        """Raises CompilationFailed."""
        return compile_in(_native_environment(self), expression)


def compile_in(native_environment: Any, expression: str) -> Compiled:
    """Raises CompilationFailed."""
    try:
        program = native_environment.compile(expression)
    except RuntimeError as error:
        raise CompilationFailed(in_words_of_go(str(error))) from None
    _check_literals(program, expression)
    native = program.return_type().name()
    return Compiled(go_type(native), declarable_type(native), program)


def _check_literals(program: Any, expression: str) -> None:
    """Refuse the literals that cel-go refuses after type checking, and the compiler here does not. Raises
    CompilationFailed.
    """
    from pilothouse.machinery.cel.literals import mixed_literals, wrong_constants

    if not _HAS_LITERALS.search(expression):
        return
    tree = SyntaxTree(program)
    complaints = sorted({*wrong_constants(tree), *mixed_literals(tree)})
    if complaints:
        raise CompilationFailed("\n".join(each.within(expression) for each in complaints))


def environment(variables: Mapping[str, str], *, types: tuple[str, ...], fields: tuple[str, ...]) -> Environment:
    return Environment(tuple(sorted(variables.items())), types, fields)


_NATIVE: BoundedCache[Environment, Any] = BoundedCache(entries=64, total_bytes=16 << 20)
_FIELD_BYTES = 256
"""Of each field of a type that patches make objects of: every type has all fields."""


def _native_environment(env: Environment) -> Any:
    native = _NATIVE.get(env)
    if native is None:
        types, fields = env.patch_types, env.patch_fields
        pool = new_descriptor_pool(types, fields) if types or fields else descriptor_pool()
        native = native_environment(pool, dict(env.variables), bindings=env.bindings)
        named = sum(map(len, (*types, *fields)))
        _NATIVE.put(env, native, size=(64 << 10) + named + _FIELD_BYTES * len(types) * len(fields))
    return native


def native_environment(pool: Any, variables: Mapping[str, str], *, bindings: bool = False) -> Any:
    """`pool` has the types of the variables."""
    from cel_expr_python import cel

    return cel.NewEnv(
        descriptor_pool=pool,
        config=cel.NewEnvConfigFromYaml(LIBRARIES + (BINDINGS if bindings else "")),
        variables={name: _native_type(kind) for name, kind in variables.items()},
        extensions=[declared_functions()],
    )


@lru_cache(maxsize=1)
def declared_functions() -> Any:
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
