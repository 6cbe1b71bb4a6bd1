"""The flow schemas and priority levels without which no server can be: nobody may change them or take them away.

Masters are served at once, whatever happens, and whoever belongs nowhere else belongs to `catch-all`.
"""

from __future__ import annotations

from pilothouse.machinery.objects import Json

EXEMPT = "exempt"
CATCH_ALL = "catch-all"


def group_subject(name: str) -> Json:
    return {"kind": "Group", "group": {"name": name}}


def all_requests_of(*subjects: Json) -> Json:
    """Return the rule that matches whatever the subjects ask."""
    resources = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    paths = {"verbs": ["*"], "nonResourceURLs": ["*"]}
    return {"subjects": list(subjects), "resourceRules": [resources], "nonResourceRules": [paths]}


def flow_schema_spec(level: str, precedence: int, distinguisher: str, *rules: Json) -> Json:
    """Return a spec whose flows are told apart by the distinguisher method; with an empty one, all are one flow."""
    spec: Json = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence}
    if distinguisher:
        spec["distinguisherMethod"] = {"type": distinguisher}
    return spec | {"rules": list(rules)}


EVERYONE = (group_subject("system:unauthenticated"), group_subject("system:authenticated"))
MANDATORY_LEVELS: dict[str, Json] = {
    EXEMPT: {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}},
    CATCH_ALL: {
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}, "lendablePercent": 0},
    },
}
MANDATORY_SCHEMAS: dict[str, Json] = {
    EXEMPT: flow_schema_spec(EXEMPT, 1, "", all_requests_of(group_subject("system:masters"))),
    CATCH_ALL: flow_schema_spec(CATCH_ALL, 10000, "ByUser", all_requests_of(*EVERYONE)),
}
"""Specs by name, as those of the levels are."""
