"""Admission expressions on objects whose types are known, so that undefined fields are found."""

from __future__ import annotations

from collections.abc import Mapping

from pilothouse.machinery.cel.admission import AdmissionCompiler
from pilothouse.machinery.cel.declared import Declared, DeclaredTypes
from pilothouse.machinery.cel.front.types import Type


class KnownTypes:
    """Types of the objects that an expression is about; None for an unknown type."""

    def __init__(self, obj: Declared | None, params: Declared | None) -> None:
        declared = DeclaredTypes()
        self.variables: dict[str, Type] = {}
        if obj is not None:
            self.variables["object"] = self.variables["oldObject"] = declared.add(obj, "kubernetes.Object")
        if params is not None:
            self.variables["params"] = declared.add(params, "kubernetes.Params")
        self.structs = declared.structs


class TypeCheckingCompiler(AdmissionCompiler):
    def __init__(self, known: KnownTypes) -> None:
        super().__init__(composed=True)
        self._known = known

    def known_types(self) -> Mapping[str, Type]:
        return self._known.variables

    def known_structs(self) -> Mapping[str, Mapping[str, Type]]:
        return self._known.structs
