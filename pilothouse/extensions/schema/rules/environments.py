"""Where rules are compiled: once against the types of their schema, and once more to be run on plain values.

Only the first can refuse a rule. The second sees anything as anything, because values are made of JSON.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pilothouse.extensions.schema.rules.declared import Declared
from pilothouse.extensions.schema.rules.functions import implementations
from pilothouse.extensions.schema.rules.typed import TypedPool
from pilothouse.machinery.cel.signatures import signatures
from pilothouse.machinery.cel.wording import in_words_of_go

_LIBRARIES = """
name: kubernetes
extensions:
- name: optional
- name: strings
  version: 2
- name: sets
- name: lists
- name: two-var-comprehensions
- name: bindings
"""


class CompilationFailed(Exception):
    """Its text is what cel-go says, with the place in the expression."""


class TypedEnvironment:
    """Compiles expressions on `self` and `oldSelf` of one declared type."""

    def __init__(self, declared: Declared) -> None:
        self._typed = TypedPool(declared)
        self._plain = self._environment(self._typed.type_name)
        self._optional: Any = None

    def compile(self, expression: str, *, optional_old: bool = False) -> Any:
        """Raises CompilationFailed."""
        env = self._plain
        if optional_old:
            # An optional cannot be declared from outside, so that an optional oldSelf may be anything.
            self._optional = env = self._optional or self._environment("dyn")
        try:
            return env.compile(expression)
        except RuntimeError as error:
            raise CompilationFailed(in_words_of_go(str(error))) from None

    def _environment(self, old_type: str) -> Any:
        from cel_expr_python import cel

        return cel.NewEnv(
            descriptor_pool=self._typed.pool,
            config=cel.NewEnvConfigFromYaml(_LIBRARIES),
            variables={"self": cel.Type(self._typed.type_name), "oldSelf": cel.Type(old_type)},
            extensions=[_declared_functions()],
        )


def check_runnable(expression: str) -> None:
    """Raises CompilationFailed for an expression that is right, but has functions that cannot be run here."""
    try:
        runtime_environment().compile(expression)
    except RuntimeError as error:
        raise CompilationFailed(in_words_of_go(str(error))) from None


@lru_cache(maxsize=1)
def runtime_environment() -> Any:
    from cel_expr_python import cel

    anything = cel.Type("dyn")
    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(_LIBRARIES),
        variables=dict.fromkeys(("self", "oldSelf", "hasOldSelf", "oldSelfValue"), anything),
        extensions=[_implemented_functions()],
    )


@lru_cache(maxsize=1)
def _declared_functions() -> Any:
    from cel_expr_python import cel

    overloads: dict[str, list[Any]] = {}
    for each in signatures():
        overload = cel.Overload(
            each.overload,
            return_type=cel.Type(each.result),
            parameters=[cel.Type(kind) for kind in each.parameters],
            is_member=each.is_member,
        )
        overloads.setdefault(each.function, []).append(overload)
    return cel.CelExtension("kubernetes", [cel.FunctionDecl(name, declared) for name, declared in overloads.items()])


@lru_cache(maxsize=1)
def _implemented_functions() -> Any:
    """Functions that take anything, and look at what they got."""
    from cel_expr_python import cel

    overloads: dict[str, list[Any]] = {}
    for each in implementations():
        overload = cel.Overload(
            f"{each.name}/{'member/' if each.is_member else ''}{len(each.parameters)}/{each.parameters[0]}",
            return_type=cel.Type("dyn"),
            parameters=[cel.Type(kind) for kind in each.parameters],
            is_member=each.is_member,
            impl=each.run,
        )
        overloads.setdefault(each.name, []).append(overload)
    return cel.CelExtension("kubernetes", [cel.FunctionDecl(name, declared) for name, declared in overloads.items()])
