"""serviceaccounts/token: issues service account tokens, and reads the objects that tokens are bound to.

Nothing is stored. Bound objects are read anew for each token request.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.registry.operations import RequestContext, Result, Validate
from pilothouse.apiserver.registry.options import GetOptions, WriteOptions
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.kube.config import ServiceAccountConfig
from pilothouse.kube.core.nodes.resource import NODES
from pilothouse.kube.core.pods.resource import PODS
from pilothouse.kube.core.secrets import SECRETS
from pilothouse.kube.core.serviceaccounts import SERVICE_ACCOUNTS
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import served
from pilothouse.kube.serviceaccount import validator
from pilothouse.kube.serviceaccount.keys import SigningKey, TokenIssuer
from pilothouse.kube.validation.fields import validate_token_expiration
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest, Conflict, Invalid, NotFound
from pilothouse.machinery.field import Errors, FieldError, invalid, root
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource, GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of, text, uid_of
from pilothouse.machinery.server_errors import InternalError
from pilothouse.machinery.times import Clock, format_time, system_clock

TOKEN_REQUEST = GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")
DEFAULT_EXPIRATION = 60 * 60


class TokenStorage:
    keeps_system_fields = True
    """A uid in the request is a precondition on the service account."""

    def __init__(
        self, objects: BoundObjects, issuer: TokenIssuer, config: ServiceAccountConfig, clock: Clock = system_clock
    ) -> None:
        self._objects = objects
        self._issuer = issuer
        self._config = config
        self._clock = clock

    async def create_named(
        self, ctx: RequestContext, name: str, obj: Json, *, options: WriteOptions, validate: Validate
    ) -> Result:
        if name_of(obj) not in ("", name):
            reason = "must match the service account name if specified"
            raise _invalid(name, invalid(root("metadata", "name"), name_of(obj), reason))
        if namespace_of(obj) not in ("", ctx.namespace):
            reason = "must match the service account namespace if specified"
            raise _invalid(name, invalid(root("metadata", "namespace"), namespace_of(obj), reason))
        account = await self._objects.service_account(ctx, name)
        self._complete(obj, account)
        if errors := list(validate_token_request(obj)):
            raise Invalid.of(TOKEN_REQUEST.group_kind, "", errors)
        await validate(obj)
        binding = await self._objects.binding(ctx, name, obj["spec"].get("boundObjectRef"))
        spec = obj["spec"]
        requested, limit = spec["expirationSeconds"], self._config.max_expiration
        if limit and requested > limit:
            ctx.warn(f"requested expiration of {requested} seconds shortened to {limit} seconds")
            spec["expirationSeconds"] = limit
        now, seconds, audiences = self._clock(), spec["expirationSeconds"], spec["audiences"]
        # Tokens that admission projects into pods live longer, for clients that never reload the token.
        extended = (
            self._config.extend_expiration
            and binding.pod is not None
            and seconds == validator.WARN_ONLY_EXPIRATION
            and set(audiences) <= set(self._config.audiences)
        )
        lifetime = (
            validator.Lifetime(validator.EXTENDED_EXPIRATION, warn_after=seconds)
            if extended
            else validator.Lifetime(seconds)
        )
        claims = validator.make_claims(account, binding, audiences=audiences, lifetime=lifetime, now=now)
        try:
            token = await self._issuer.sign(claims)
        except (OSError, ValueError) as error:
            raise InternalError.of(f"failed to generate token: {error}") from error
        # The reported expiration may be earlier than the token's, so that clients renew the token in time.
        expires = now + timedelta(seconds=seconds)
        return obj | {"status": {"token": token, "expirationTimestamp": format_time(expires)}}

    def _complete(self, obj: Json, account: Json) -> None:
        meta, spec = metadata(obj), obj.setdefault("spec", {})
        if meta.get("uid", uid_of(account)) != uid_of(account):
            subject = f"the UID in the token request ({uid_of(obj)})"
            reason = f"{subject} does not match the UID of the service account ({uid_of(account)})"
            raise Conflict.of(GroupResource(TOKEN_REQUEST.group, TOKEN_REQUEST.kind), name_of(account), reason)
        meta |= {"name": name_of(account), "namespace": namespace_of(account), "uid": uid_of(account)}
        meta["creationTimestamp"] = format_time(self._clock())
        spec["audiences"] = spec.get("audiences") or list(self._config.audiences)
        obj["status"] = {"token": "", "expirationTimestamp": None}


def default_token_request(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    if spec.get("expirationSeconds") is None:
        spec["expirationSeconds"] = DEFAULT_EXPIRATION


def validate_token_request(obj: Json) -> Errors:
    return validate_token_expiration(obj["spec"]["expirationSeconds"], root("spec", "expirationSeconds"))


def _invalid(name: str, error: FieldError) -> Invalid:
    return Invalid.of(TOKEN_REQUEST.group_kind, name, [error])


def service_account_storages(registries: Registries, config: ServiceAccountConfig) -> list[ServedResource]:
    """Return the storages. Without a signing key, the token subresource is absent."""
    registry = registries.open(SERVICE_ACCOUNTS)
    if config.signing_key_file is None:
        return [served(registry)]
    issuer = TokenIssuer(config.issuers[0], SigningKey(config.signing_key_file))
    tokens = TokenStorage(BoundObjects.open(registries), issuer, config)
    token = served(registry, tokens, subresource="token", kind=TOKEN_REQUEST)
    return [served(registry), replace(token, default=default_token_request)]


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

    async def binding(self, ctx: RequestContext, account: str, ref: Json | None) -> validator.TokenBinding:
        """Return the binding of a token. Raises NotFound, Conflict for a different UID, BadRequest for an unsupported
        kind."""
        if ref is None:
            return validator.UNBOUND
        kind, name = kind_of(ref), text(ref, "name")
        match (kind.group, kind.kind):
            case ("", "Pod"):
                pod = await _get(self.pods, ctx, name)
                if text(pod, "spec", "serviceAccountName") != account:
                    prefix = f"cannot bind token for serviceaccount {quote(account)}"
                    raise BadRequest(f"{prefix} to pod running with different serviceaccount name.")
                bound = pod
                binding = validator.TokenBinding(pod=bound, node=await self._node_of(ctx, bound))
            case ("", "Node"):
                bound = await _get(self.nodes, replace(ctx, namespace=""), name)
                binding = validator.TokenBinding(node=bound)
            case ("", "Secret"):
                bound = await _get(self.secrets, ctx, name)
                binding = validator.TokenBinding(secret=bound)
            case _:
                printed = f"{kind.group}/{kind.version}, Kind={kind.kind}"
                raise BadRequest(f"cannot bind token to object of type {printed}")
        if text(ref, "uid") not in ("", uid_of(bound)):
            raise Conflict.of(GroupResource(kind.group, kind.kind), text(ref, "name"), uid_mismatch(ref["uid"]))
        return binding

    async def _node_of(self, ctx: RequestContext, pod: Json) -> Json | None:
        """Return the pod's node; for a missing node, return an object with the name alone."""
        name = text(pod, "spec", "nodeName")
        if not name:
            return None
        try:
            return await _get(self.nodes, replace(ctx, namespace=""), name)
        except NotFound:
            return {"metadata": {"name": name}}


def kind_of(ref: Json) -> GroupVersionKind:
    """Return the kind of the reference. An invalid apiVersion counts as empty."""
    try:
        version = GroupVersion.parse(text(ref, "apiVersion"))
    except ValueError:
        version = GroupVersion("", "")
    return version.kind(text(ref, "kind"))


async def _get(registry: RegistryStore, ctx: RequestContext, name: str) -> Json:
    result = await registry.get(replace(ctx, resource=registry.resource.group_resource), name, GetOptions())
    return result.parse()


def uid_mismatch(uid: str) -> str:
    """Return the message for a bound object that was deleted and recreated."""
    return (
        f"the UID in the bound object reference ({uid}) does not match the UID in record. "
        "The object might have been deleted and then recreated"
    )
