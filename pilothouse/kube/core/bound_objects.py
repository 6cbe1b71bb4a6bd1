"""The objects that a token can be bound to, read anew for each token that is asked for."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.options import GetOptions
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.kube.core.nodes.resource import NODES
from pilothouse.kube.core.pods.resource import PODS
from pilothouse.kube.core.secrets import SECRETS
from pilothouse.kube.core.serviceaccounts import SERVICE_ACCOUNTS
from pilothouse.kube.registries import Registries
from pilothouse.kube.serviceaccount.claims import UNBOUND, TokenBinding
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest, Conflict, NotFound
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource, GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json, text, uid_of


@dataclass(frozen=True, slots=True)
class BoundObjects:
    accounts: RegistryStore
    pods: RegistryStore
    secrets: RegistryStore
    nodes: RegistryStore

    @classmethod
    def open(cls, registries: Registries) -> BoundObjects:
        return cls(*map(registries.open, (SERVICE_ACCOUNTS, PODS, SECRETS, NODES)))

    async def service_account(self, ctx: RequestContext, name: str) -> Json:
        """Raises NotFound."""
        return await _get(self.accounts, ctx, name)

    async def binding(self, ctx: RequestContext, account: str, ref: Json | None) -> TokenBinding:
        """Raises NotFound, Conflict where it is another object than the one meant, BadRequest where it cannot be."""
        if ref is None:
            return UNBOUND
        kind, name = kind_of(ref), text(ref, "name")
        match (kind.group, kind.kind):
            case ("", "Pod"):
                pod = await _get(self.pods, ctx, name)
                if text(pod, "spec", "serviceAccountName") != account:
                    whose = f"cannot bind token for serviceaccount {quote(account)}"
                    raise BadRequest(f"{whose} to pod running with different serviceaccount name.")
                found = pod
                binding = TokenBinding(pod=found, node=await self._node_of(ctx, found))
            case ("", "Node"):
                found = await _get(self.nodes, replace(ctx, namespace=""), name)
                binding = TokenBinding(node=found)
            case ("", "Secret"):
                found = await _get(self.secrets, ctx, name)
                binding = TokenBinding(secret=found)
            case _:
                shown = f"{kind.group}/{kind.version}, Kind={kind.kind}"
                raise BadRequest(f"cannot bind token to object of type {shown}")
        if text(ref, "uid") not in ("", uid_of(found)):
            raise Conflict.of(GroupResource(kind.group, kind.kind), text(ref, "name"), uid_mismatch(ref["uid"]))
        return binding

    async def _node_of(self, ctx: RequestContext, pod: Json) -> Json | None:
        """Return the pod's node for the token: a node that does not exist is given by its name alone."""
        name = text(pod, "spec", "nodeName")
        if not name:
            return None
        try:
            return await _get(self.nodes, replace(ctx, namespace=""), name)
        except NotFound:
            return {"metadata": {"name": name}}


def kind_of(ref: Json) -> GroupVersionKind:
    """An apiVersion that makes no sense is as good as none."""
    try:
        version = GroupVersion.parse(text(ref, "apiVersion"))
    except ValueError:
        version = GroupVersion("", "")
    return version.kind(text(ref, "kind"))


async def _get(registry: RegistryStore, ctx: RequestContext, name: str) -> Json:
    result = await registry.get(replace(ctx, resource=registry.resource.group_resource), name, GetOptions())
    return result.parse()


def uid_mismatch(uid: str) -> str:
    """Say that a token is asked for in the name of an object that is gone."""
    return (
        f"the UID in the bound object reference ({uid}) does not match the UID in record. "
        "The object might have been deleted and then recreated"
    )
