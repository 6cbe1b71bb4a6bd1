"""Values in refusals: enumerations and int-or-strings as JSON, plain strings in Go's quotes."""

from __future__ import annotations

from sample_pods import pod
from whole_server import whole_server

from pilothouse.client import Json


async def test_enumerations_are_shown_as_json_and_strings_in_quotes() -> None:
    budget = {"metadata": {"name": "b"}, "spec": {"selector": {}, "maxUnavailable": "\0%<"}}
    role = {"kind": "\0", "apiGroup": "rbac.authorization.k8s.io", "name": "r"}

    async with whole_server() as server:

        async def refused(group: str, plural: str, body: Json) -> str:
            answer = await server.request("POST", f"/{group}/namespaces/default/{plural}", body)
            assert answer.status == 422
            message: str = answer.json["message"]
            return message

        policy = await refused("api/v1", "pods", pod(restartPolicy="\0<"))
        limit = await refused("apis/policy/v1", "poddisruptionbudgets", budget)
        binding = {"metadata": {"name": "b"}, "roleRef": role}
        kind = await refused("apis/rbac.authorization.k8s.io/v1", "rolebindings", binding)
    assert 'spec.restartPolicy: Unsupported value: "\\u0000\\u003c": ' in policy
    assert 'spec.maxUnavailable: Invalid value: "\\u0000%\\u003c": ' in limit
    assert 'roleRef.kind: Unsupported value: "\\x00": ' in kind
