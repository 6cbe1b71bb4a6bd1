"""Admission expressions on objects whose types are known: the compiler then sees which fields there are not."""

from __future__ import annotations

from pilothouse.machinery.cel.admission import AdmissionCompiler
from pilothouse.machinery.cel.declared import Declared
from pilothouse.machinery.cel.environment import Compiled, compile_in, native_environment
from pilothouse.machinery.cel.messages import new_descriptor_pool
from pilothouse.machinery.cel.typed_pool import TypedPool
from pilothouse.machinery.cel.wording import DYN


class KnownTypes:
    """The types of the objects that an expression is about; None where nobody knows them."""

    def __init__(self, obj: Declared | None, params: Declared | None) -> None:
        self.names = {"object": DYN, "oldObject": DYN, "params": DYN}
        typed = TypedPool(*filter(None, (obj, params)), base=new_descriptor_pool())
        names = iter(typed.type_names)
        if obj is not None:
            self.names["object"] = self.names["oldObject"] = next(names)
        if params is not None:
            self.names["params"] = next(names)
        self.pool = typed.pool


class TypeCheckingCompiler(AdmissionCompiler):
    def __init__(self, known: KnownTypes) -> None:
        super().__init__(composed=True)
        self._known = known

    def _compile(self, expression: str, variables: dict[str, str]) -> Compiled:
        typed = {name: self._known.names.get(name, kind) for name, kind in variables.items()}
        return compile_in(native_environment(self._known.pool, typed), expression)
