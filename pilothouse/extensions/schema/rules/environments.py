"""Where rules are compiled: once against the types of their schema, and once more to be run on plain values.

Only the first can refuse a rule. The second sees anything as anything, because values are made of JSON.
"""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.cel.declared import Declared
from pilothouse.machinery.cel.environment import (
    LIBRARIES,
    Environment,
    compile_in,
    declared_functions,
)
from pilothouse.machinery.cel.program import Program
from pilothouse.machinery.cel.syntax import SyntaxTree
from pilothouse.machinery.cel.typed_pool import TypedPool
from pilothouse.machinery.dataclass import dataclass

_UNTYPED = Environment((("oldSelf", "dyn"), ("self", "dyn")))


class TypedEnvironment:
    """Compiles expressions on `self` and `oldSelf` of one declared type."""

    def __init__(self, declared: Declared) -> None:
        self._typed = TypedPool(declared)
        self._plain = self._environment(self._typed.type_names[0])
        self._optional: Any = None

    def compile(self, expression: str, *, optional_old: bool = False) -> Any:
        """Raises CompilationFailed."""
        env = self._plain
        if optional_old:
            # An optional cannot be declared from outside, so that an optional oldSelf may be anything.
            self._optional = env = self._optional or self._environment("dyn")
        return compile_in(env, expression).program

    def _environment(self, old_type: str) -> Any:
        from cel_expr_python import cel

        return cel.NewEnv(
            descriptor_pool=self._typed.pool,
            config=cel.NewEnvConfigFromYaml(LIBRARIES),
            variables={"self": cel.Type(self._typed.type_names[0]), "oldSelf": cel.Type(old_type)},
            extensions=[declared_functions()],
        )


@dataclass(frozen=True, slots=True)
class RuleExpression:
    program: Program
    uses_old: bool


@bounded_cache(entries=512, key_bytes=256)
def compiled_rule(expression: str) -> RuleExpression:
    """Return a rule that can be run on plain values, whatever their types. Raises CompilationFailed."""
    compiled = _UNTYPED.compile(expression)
    return RuleExpression(Program(compiled.program), SyntaxTree(compiled.program).uses("oldSelf"))
