"""The expressions of admission: which variables they see, and which variables of its own a policy adds.

A policy's variables are compiled one after the other; each sees those before it as `variables.name`.
"""

from __future__ import annotations

from pilothouse.machinery.cel.environment import CompilationFailed, Compiled, environment
from pilothouse.machinery.cel.messages import mangled, patch_fields, patch_types
from pilothouse.machinery.cel.signatures import AUTHORIZER, RESOURCE_CHECK
from pilothouse.machinery.cel.wording import DYN
from pilothouse.machinery.dataclass import dataclass

_ALWAYS = {
    "object": DYN,
    "oldObject": DYN,
    "namespaceObject": "kubernetes.Namespace",
    "request": "kubernetes.AdmissionRequest",
}


@dataclass(frozen=True, slots=True)
class Declarations:
    """The variables and types that an expression may use besides the request and its objects."""

    params: bool = False
    authorizer: bool = True
    patch_types: bool = False


class AdmissionCompiler:
    """Compiles the expressions of one object."""

    def __init__(self, *, composed: bool = False) -> None:
        """`composed`: the policy has variables."""
        self._composed: dict[str, str] = {"variables": "kubernetes.variables"} if composed else {}

    def compile(self, expression: str, declarations: Declarations) -> Compiled:
        """Raises CompilationFailed."""
        variables = {**_ALWAYS, **self._composed}
        if declarations.params:
            variables["params"] = DYN
        if declarations.authorizer:
            variables |= {"authorizer": AUTHORIZER, "authorizer.requestResource": RESOURCE_CHECK}
        if not declarations.patch_types:
            return self._compile(expression, variables)
        text = mangled(expression)
        return environment(variables, types=patch_types(text), fields=patch_fields(text)).compile(text)

    def _compile(self, expression: str, variables: dict[str, str]) -> Compiled:
        return environment(variables, types=(), fields=()).compile(expression)

    def declare_variable(self, name: str, expression: str, declarations: Declarations) -> Compiled:
        """Raises CompilationFailed; the variable can then be used nevertheless, as anything."""
        self._composed[f"variables.{name}"] = DYN
        compiled = self.compile(expression, declarations)
        self._composed[f"variables.{name}"] = compiled.native_type
        return compiled


__all__ = ["AdmissionCompiler", "CompilationFailed", "Compiled", "Declarations"]
