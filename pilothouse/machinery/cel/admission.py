"""The expressions of admission: the variables that they see, and the variables that a policy adds.

A policy's variables are compiled one after the other; each sees earlier variables as `variables.name`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from pilothouse.machinery.cel.environment import CompilationFailed, Compiled, Environment
from pilothouse.machinery.cel.front import types
from pilothouse.machinery.cel.front.types import Type
from pilothouse.machinery.cel.library.rows import NAMES, parse_type
from pilothouse.machinery.cel.library.table import LATEST
from pilothouse.machinery.dataclass import dataclass

VARIABLES = "kubernetes.variables"
_TEXT, _TEXTS, _TIME = "string", "list(string)", "timestamp"
_GVK = {"group": _TEXT, "version": _TEXT, "kind": _TEXT}
_GVR = {"group": _TEXT, "version": _TEXT, "resource": _TEXT}
_STRUCTS = {
    "kubernetes.GroupVersionKind": _GVK,
    "kubernetes.GroupVersionResource": _GVR,
    "kubernetes.UserInfo": {
        "username": _TEXT,
        "uid": _TEXT,
        "groups": _TEXTS,
        "extra": "map(string, list(string))",
    },
    "kubernetes.AdmissionRequest": {
        "kind": "kubernetes.GroupVersionKind",
        "resource": "kubernetes.GroupVersionResource",
        "subResource": _TEXT,
        "requestKind": "kubernetes.GroupVersionKind",
        "requestResource": "kubernetes.GroupVersionResource",
        "requestSubResource": _TEXT,
        "name": _TEXT,
        "namespace": _TEXT,
        "operation": _TEXT,
        "userInfo": "kubernetes.UserInfo",
        "dryRun": "bool",
        "options": "dyn",
    },
    "kubernetes.NamespaceSpec": {"finalizers": _TEXTS},
    "kubernetes.NamespaceCondition": {
        "status": _TEXT,
        "type": _TEXT,
        "lastTransitionTime": _TIME,
        "message": _TEXT,
        "reason": _TEXT,
    },
    "kubernetes.NamespaceStatus": {"conditions": "list(kubernetes.NamespaceCondition)", "phase": _TEXT},
    "kubernetes.NamespaceMetadata": {
        "name": _TEXT,
        "generateName": _TEXT,
        "namespace": _TEXT,
        "labels": "map(string, string)",
        "annotations": "map(string, string)",
        "UID": _TEXT,
        "creationTimestamp": _TIME,
        "deletionGracePeriodSeconds": "int",
        "deletionTimestamp": _TIME,
        "generation": "int",
        "resourceVersion": _TEXT,
        "finalizers": _TEXTS,
    },
    "kubernetes.Namespace": {
        "metadata": "kubernetes.NamespaceMetadata",
        "spec": "kubernetes.NamespaceSpec",
        "status": "kubernetes.NamespaceStatus",
    },
}


@lru_cache(maxsize=1)
def _structs() -> dict[str, dict[str, Type]]:
    return {name: {key: parse_type(kind) for key, kind in fields.items()} for name, fields in _STRUCTS.items()}


@dataclass(frozen=True, slots=True)
class Declarations:
    """The variables and types that an expression may use besides the request and its objects."""

    params: bool = False
    authorizer: bool = True
    patch_types: bool = False


class AdmissionCompiler:
    """Compiles the expressions of one object."""

    def __init__(self, *, composed: bool = False, minor: int = LATEST) -> None:
        """`composed`: the policy may have variables. `minor`: version of Kubernetes that must know all functions."""
        self._variables: dict[str, Type] | None = {} if composed else None
        self._minor = minor
        self._environments: dict[Declarations, Environment] = {}

    def compile(self, expression: str, declarations: Declarations) -> Compiled:
        """Raises CompilationFailed."""
        found = self._environments.get(declarations)
        if found is None:
            found = self._environments[declarations] = self._environment(declarations)
        return found.compile(expression)

    def _environment(self, declarations: Declarations) -> Environment:
        if self._variables is None and not self.known_types():
            return _shared_environment(declarations, self._minor)
        extra = {} if self._variables is None else {VARIABLES: self._variables}
        variables = _declared(declarations) | (
            {} if self._variables is None else {"variables": types.struct(VARIABLES)}
        )
        return Environment(
            {**variables, **self.known_types()},
            {**_structs(), **extra, **self.known_structs()},
            patches=declarations.patch_types,
            minor=self._minor,
        )

    def known_types(self) -> Mapping[str, Type]:
        """Return types of variables that are dynamic otherwise."""
        return {}

    def known_structs(self) -> Mapping[str, Mapping[str, Type]]:
        return {}

    def declare_variable(self, name: str, expression: str, declarations: Declarations) -> Compiled:
        """Raises CompilationFailed; the variable can then be used nevertheless, as dynamic."""
        assert self._variables is not None
        try:
            compiled = self.compile(expression, declarations)
        except CompilationFailed:
            self._variables[name] = types.DYN
            raise
        self._variables[name] = _declarable(compiled.result)
        return compiled


def _declared(declarations: Declarations) -> dict[str, Type]:
    variables = {
        "object": types.DYN,
        "oldObject": types.DYN,
        "namespaceObject": types.struct("kubernetes.Namespace"),
        "request": types.struct("kubernetes.AdmissionRequest"),
    }
    if declarations.params:
        variables["params"] = types.DYN
    if declarations.authorizer:
        variables["authorizer"] = NAMES["Authorizer"]
        variables["authorizer.requestResource"] = NAMES["ResourceCheck"]
    return variables


@lru_cache(maxsize=32)
def _shared_environment(declarations: Declarations, minor: int) -> Environment:
    return Environment(_declared(declarations), _structs(), patches=declarations.patch_types, minor=minor)


def _declarable(kind: Type) -> Type:
    """Return the type that a variable is declared with: objects, optionals and types of Kubernetes are dynamic."""
    if kind.kind == "list":
        return types.list_of(_declarable(kind.parameters[0]))
    if kind.kind == "map":
        return types.map_of(_declarable(kind.parameters[0]), _declarable(kind.parameters[1]))
    return types.DYN if kind.kind in ("struct", "opaque", "type", "error") else kind


__all__ = ["AdmissionCompiler", "CompilationFailed", "Compiled", "Declarations"]
