"""SelfSubjectRulesReviews: what may I do in this namespace?"""

from __future__ import annotations

from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.authz.rules import ResourceRule, rules_of
from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.operations import Result, Validate
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.objects import Json, text


class SelfSubjectRulesReviews:
    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def create(self, ctx: RequestContext, obj: Json, *, options: WriteOptions, validate: Validate) -> Result:
        namespace = text(obj, "spec", "namespace")
        if not namespace:
            raise BadRequest("no namespace on request")
        await validate(obj)
        rules = await rules_of(self._authorizer, ctx.user, namespace)
        status: Json = {
            "resourceRules": [_resource_rule(rule) for rule in rules.resources],
            "nonResourceRules": [
                {"verbs": list(rule.verbs), **({"nonResourceURLs": list(rule.paths)} if rule.paths else {})}
                for rule in rules.paths
            ],
            "incomplete": rules.incomplete,
        }
        return {
            "kind": obj["kind"],
            "apiVersion": obj["apiVersion"],
            "metadata": {},
            "spec": {},
            "status": status | ({"evaluationError": rules.error} if rules.error else {}),
        }


def _resource_rule(rule: ResourceRule) -> Json:
    parts: Json = {
        "verbs": list(rule.verbs),
        "apiGroups": list(rule.groups),
        "resources": list(rule.resources),
        "resourceNames": list(rule.names),
    }
    return {name: value for name, value in parts.items() if value or name == "verbs"}
