"""What validating and mutating policies compile alike: their variables and their match conditions."""

from __future__ import annotations

from pilothouse.apiserver.cel.expression import Expression, compiled_variable
from pilothouse.apiserver.cel.match_conditions import MatchConditions
from pilothouse.machinery.cel.admission import AdmissionCompiler, Declarations
from pilothouse.machinery.objects import Json


class Composition:
    def __init__(self, spec: Json) -> None:
        self.params = spec.get("paramKind") is not None
        self.compiler = AdmissionCompiler(composed=True)
        self.variables: dict[str, Expression] = {
            each["name"]: compiled_variable(self.compiler, each["name"], each["expression"], self.declarations())
            for each in spec.get("variables") or ()
        }
        self.conditions = MatchConditions.of_admission(spec.get("matchConditions") or (), params=self.params)

    def declarations(self, *, authorizer: bool = True, patch_types: bool = False) -> Declarations:
        return Declarations(params=self.params, authorizer=authorizer, patch_types=patch_types)
