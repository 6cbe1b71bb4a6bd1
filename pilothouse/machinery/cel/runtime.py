"""Running expressions on plain values: whatever the compiler checked, here anything is anything.

Failures are told in cel-go's words where those are known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pilothouse.machinery.cel.environment import BINDINGS, LIBRARIES, CompilationFailed
from pilothouse.machinery.cel.functions.implementations import implementations
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.wording import in_words_of_go
from pilothouse.machinery.objects import Json

_STATUS = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_WORDS_OF_GO = (
    (re.compile(r"^divide by zero$"), "division by zero"),
    (re.compile(r'^Key not found in map : "?(.*?)"?$'), r"no such key: \1"),
    (re.compile(r"^Index error: index=(-?\d+) size=\d+$"), r"index out of bounds: \1"),
    (re.compile(r"^No matching overloads found.*$", re.DOTALL), "no such overload"),
)


@dataclass(frozen=True, slots=True)
class RuntimeEnvironment:
    native: Any

    def compile(self, expression: str) -> Any:
        """Raises CompilationFailed."""
        try:
            return self.native.compile(expression)
        except RuntimeError as error:
            raise CompilationFailed(in_words_of_go(str(error))) from None

    def evaluate(self, program: Any, variables: Json) -> Any:
        """Raises EvaluationFailed."""
        try:
            result = program.eval(self.native.Activation(variables))
            if result.type().name() != "ERROR":
                return result.plain_value()
            reason = str(result.plain_value())
        except RuntimeError as error:
            reason = str(error)
        raise EvaluationFailed(_failure_in_words_of_go(_STATUS.sub("", reason)))


@lru_cache(maxsize=16)
def runtime_environment(variables: tuple[str, ...]) -> RuntimeEnvironment:
    from cel_expr_python import cel

    native = cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(LIBRARIES + BINDINGS),
        variables=dict.fromkeys(variables, cel.Type("dyn")),
        extensions=[_implemented_functions()],
    )
    return RuntimeEnvironment(native)


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


def _failure_in_words_of_go(reason: str) -> str:
    for pattern, words in _WORDS_OF_GO:
        if pattern.match(reason):
            return pattern.sub(words, reason)
    return reason
