"""Whether a server may leave authentication and authorization to the cluster: by its ServiceAccount, and by what it
says itself.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping

from pilothouse.cli.diagnosis.findings import Finding, failed, note, ok
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import ListOptions
from pilothouse.controlplane.delegation_roles import bind_auth_delegator, bind_trust_reader
from pilothouse.kube.bootstrap.cluster_authentication_trust import NAME, NAMESPACE
from pilothouse.machinery.objects import Json, labels_of, namespace_of
from pilothouse.machinery.status_error import StatusError

_STEP = "delegation"
_TRUST_MAP: Json = {"verb": "get", "resource": "configmaps", "namespace": NAMESPACE, "name": NAME}
_REVIEWS: tuple[Json, ...] = (
    {"verb": "create", "group": "authentication.k8s.io", "resource": "tokenreviews"},
    {"verb": "create", "group": "authorization.k8s.io", "resource": "subjectaccessreviews"},
)
_REFUSED = re.compile(
    r'User \\*"(?P<user>[^"\\]+)\\*" cannot \w+ resource \\*"(?P<what>configmaps|tokenreviews|subjectaccessreviews)\\*"'
)


def refused_by_the_cluster(said: str) -> Finding | None:
    """Return what it means where an error of the server is one of the cluster, which refuses it what it needs."""
    found = _REFUSED.search(said)
    if found is None:
        return None
    bind = bind_trust_reader if found["what"] == "configmaps" else bind_auth_delegator
    return failed(_STEP, f"the cluster refuses {found['what']} to the server, {found['user']}", bind(found["user"]))


async def examine_delegation(client: Client, service: Json) -> AsyncIterator[Finding]:
    """What the ServiceAccounts of the pods behind the Service may do; nothing where no pods can be found."""
    try:
        for account in sorted(await _service_accounts(client, service)):
            for finding in await _examine(client, namespace_of(service), account):
                yield finding
    except StatusError as error:
        yield note(_STEP, f"the permissions of the server are unknown: {error}")


async def _examine(client: Client, namespace: str, account: str) -> list[Finding]:
    user, named = f"system:serviceaccount:{namespace}:{account}", f"ServiceAccount {namespace}/{account}"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    who: Json = {"user": user, "groups": groups}
    refused = [each["resource"] for each in _REVIEWS if not await _may(client, who, each)]
    found = []
    if not await _may(client, who, _TRUST_MAP):
        found.append(failed(_STEP, f"{named} may not read ConfigMap {NAMESPACE}/{NAME}", bind_trust_reader(user)))
    if refused:
        found.append(failed(_STEP, f"{named} may not create {' and '.join(refused)}", bind_auth_delegator(user)))
    return found or [ok(_STEP, f"{named} may read the authentication configuration and create reviews")]


async def _may(client: Client, who: Json, attributes: Json) -> bool:
    reviews = client.resource("authorization.k8s.io/v1", "subjectaccessreviews")
    review = await reviews.create({"spec": {**who, "resourceAttributes": attributes}})
    return bool(review["status"].get("allowed"))


async def _service_accounts(client: Client, service: Json) -> set[str]:
    """Of the pods that the Service selects, or where there are none, of the Deployments that would make such pods."""
    selector: Mapping[str, str] = service["spec"].get("selector") or {}
    if not selector:
        return set()
    namespace = namespace_of(service)
    options = ListOptions(label_selector=",".join(f"{key}={value}" for key, value in selector.items()))
    pods: list[Json] = (await client.resource("v1", "pods", namespace=namespace).list(options))["items"]
    if not pods:
        deployments = await client.resource("apps/v1", "deployments", namespace=namespace).list()
        templates = [each["spec"]["template"] for each in deployments["items"]]
        pods = [each for each in templates if selector.items() <= labels_of(each).items()]
    return {pod["spec"].get("serviceAccountName") or "default" for pod in pods}
