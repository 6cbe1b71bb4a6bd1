"""The mandatory flow schemas and priority levels; clients cannot change or delete them.

`exempt` serves system:masters without limits; `catch-all` matches all remaining requests.
"""

from __future__ import annotations

from pilothouse.machinery.objects import Json

EXEMPT = "exempt"
CATCH_ALL = "catch-all"


def group_subject(name: str) -> Json:
    return {"kind": "Group", "group": {"name": name}}


def all_requests_of(*subjects: Json) -> Json:
    """Return a rule for all requests of the subjects."""
    resources = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    paths = {"verbs": ["*"], "nonResourceURLs": ["*"]}
    return {"subjects": list(subjects), "resourceRules": [resources], "nonResourceRules": [paths]}


def flow_schema_spec(level: str, precedence: int, distinguisher: str, *rules: Json) -> Json:
    """Return a flow schema spec; an empty distinguisher method makes all requests a single flow."""
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
"""Name → spec."""
