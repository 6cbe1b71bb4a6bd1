"""Compilation of the parts shared by validating and mutating policies: variables and match conditions."""

from __future__ import annotations

from pilothouse.apiserver.admission.matching.conditions import Owner, conditions_hold
from pilothouse.apiserver.admission.versioned import VersionedAttributes
from pilothouse.apiserver.cel.authorization import Authorizations
from pilothouse.apiserver.cel.expression import Expression, compiled_variable
from pilothouse.apiserver.cel.match_conditions import MatchConditions
from pilothouse.machinery.cel.admission import AdmissionCompiler, Declarations
from pilothouse.machinery.objects import Json, name_of


class Composition:
    def __init__(self, policy: Json) -> None:
        spec = policy["spec"]
        self.params = spec.get("paramKind") is not None
        self.compiler = AdmissionCompiler(composed=True)
        self.variables: dict[str, Expression] = {
            each["name"]: compiled_variable(self.compiler, each["name"], each["expression"], self.declarations())
            for each in spec.get("variables") or ()
        }
        conditions = spec.get("matchConditions")
        self._conditions = MatchConditions.of_admission(conditions, params=self.params) if conditions else None
        self._owner = Owner(name_of(policy), "policy", "validate", spec.get("failurePolicy") == "Ignore")

    async def is_about(self, seen: VersionedAttributes, params: Json | None, authorizations: Authorizations) -> bool:
        """Return whether the match conditions hold. Raises MatchFailed."""
        if self._conditions is None:
            return True
        return await conditions_hold(self._conditions, seen, self._owner, authorizations, params=params)

    def declarations(self, *, authorizer: bool = True, patch_types: bool = False) -> Declarations:
        return Declarations(params=self.params, authorizer=authorizer, patch_types=patch_types)
