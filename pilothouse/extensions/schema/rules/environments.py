"""Where rules are compiled: against the types of their schema."""

from __future__ import annotations

from pilothouse.machinery.cel.declared import Declared, DeclaredTypes
from pilothouse.machinery.cel.environment import Compiled, Environment
from pilothouse.machinery.cel.front.types import optional_of
from pilothouse.machinery.cel.library.table import LATEST

_SELF = "selfType"


class TypedEnvironment:
    """Compiles expressions on `self` and `oldSelf` of one declared type."""

    def __init__(self, declared: Declared, *, minor: int = LATEST) -> None:
        self._declared = declared
        self._minor = minor
        self._made: dict[bool, Environment] = {}

    def compile(self, expression: str, *, optional_old: bool = False) -> Compiled:
        """Raises CompilationFailed."""
        found = self._made.get(optional_old)
        if found is None:
            types = DeclaredTypes()
            own = types.add(self._declared, _SELF)
            variables = {"self": own, "oldSelf": optional_of(own) if optional_old else own}
            found = self._made[optional_old] = Environment(variables, types.structs, minor=self._minor)
        return found.compile(expression)
