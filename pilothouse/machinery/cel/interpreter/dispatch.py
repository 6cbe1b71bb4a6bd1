"""Finding the function that takes values of the types at hand, as declared in tables of overloads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed, no_such_overload
from pilothouse.machinery.dataclass import dataclass

Run: TypeAlias = Callable[..., Any]
_SIGNS = "_-!@"
"""The first characters of the names of operators."""
ANY = object
"""Stands for a parameter that takes everything."""


@dataclass(frozen=True, slots=True)
class Overload:
    function: str
    parameters: tuple[type, ...]
    """A member function's receiver is the first."""
    run: Run

    def takes(self, types: tuple[type, ...]) -> bool:
        return all(wanted is ANY or wanted is given for wanted, given in zip(self.parameters, types, strict=True))


class Function:
    """All overloads of one name with one number of arguments."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._overloads: list[Overload] = []
        self._found: dict[tuple[type, ...], Run] = {}

    def add(self, overload: Overload) -> None:
        self._overloads.append(overload)

    def __call__(self, *arguments: Any) -> Any:
        types = tuple(map(type, arguments))
        run = self._found.get(types) or self._find(types)
        if run is None:
            raise self._no_such_overload(arguments)
        try:
            return run(*arguments)
        except (ArithmeticError, ValueError) as error:
            raise EvaluationFailed(str(error)) from None
        except (AttributeError, KeyError, TypeError):
            # Kubernetes' functions take anything, and find out that way that they got something else.
            raise self._no_such_overload(arguments) from None

    def _no_such_overload(self, arguments: tuple[Any, ...]) -> EvaluationFailed:
        """Operators are asked of their left operand, which says less about what it cannot do."""
        if self._name[0] not in _SIGNS:
            return no_such_overload(self._name, arguments)
        takes_left = any(each.parameters[0] in (ANY, type(arguments[0])) for each in self._overloads)
        return EvaluationFailed("no such overload" if takes_left else f"no such overload: {self._name}")

    def _find(self, types: tuple[type, ...]) -> Run | None:
        plain = tuple(list if issubclass(each, list) else each for each in types)
        run = next((overload.run for overload in self._overloads if overload.takes(plain)), None)
        if run is not None:
            self._found[types] = run
        return run


def function_table(overloads: Iterable[Overload]) -> dict[tuple[str, int], Function]:
    """Return the functions by name and number of arguments, the receiver included."""
    table: dict[tuple[str, int], Function] = {}
    for overload in overloads:
        key = (overload.function, len(overload.parameters))
        table.setdefault(key, Function(overload.function)).add(overload)
    return table
