"""serviceaccounts/token: what can be asked for, what is refused, and what the token then says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from service_account_tokens import ISSUER, NOON, SetClock, write_key

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.offload import Weight
from pilothouse.apiserver.registry.operations import RequestContext
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.kube.config import ServiceAccountConfig
from pilothouse.kube.core.serviceaccount_tokens import BoundObjects, TokenStorage, default_token_request
from pilothouse.kube.registries import Registries
from pilothouse.kube.serviceaccount.keys import SigningKey, TokenIssuer
from pilothouse.machinery.errors import BadRequest, Conflict, Invalid, NotFound
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json
from pilothouse.machinery.server_errors import InternalError
from pilothouse.machinery.status_error import StatusError

NOON_SECONDS = int(NOON.timestamp())


async def allow(_: Json) -> None:
    """Admission has nothing to say here."""


@dataclass
class Api:
    """The token subresource in the namespace ns, over a real store."""

    objects: BoundObjects
    config: ServiceAccountConfig
    warnings: list[str]

    async def ask(self, meta: Json | None = None, *, name: str = "robot", **spec: Any) -> Json:
        assert self.config.signing_key_file is not None
        issuer = TokenIssuer(self.config.issuers[0], SigningKey(self.config.signing_key_file))
        storage = TokenStorage(self.objects, issuer, self.config, clock=SetClock())
        ctx = RequestContext("ns", GroupResource("", "serviceaccounts"), User("jane"), warn=self.warnings.append)
        obj: Json = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": {}, "spec": spec}
        obj["metadata"] |= meta or {}
        default_token_request(obj)
        result = await storage.create_named(ctx, name, obj, options=WriteOptions(), validate=allow)
        assert isinstance(result, dict)
        return result

    async def claims(self, **spec: Any) -> Json:
        token = (await self.ask(**spec))["status"]["token"]
        said: Json = jwt.decode(token, options={"verify_signature": False})
        return said


async def store(registry: RegistryStore, name: str, **rest: Any) -> None:
    namespace = "ns" if registry.resource.namespaced else ""
    obj = {"metadata": {"name": name, "namespace": namespace, "uid": f"u-{name}"}, **rest}
    await registry.objects.create(registry.keys.object(namespace, name), obj, ttl=0, dry_run=False, weight=Weight())


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    opened = await SqliteStore.open(tmp_path / "store")
    registries = Registries(opened)
    objects = BoundObjects.open(registries)
    await store(objects.accounts, "robot")
    await store(objects.pods, "its", spec={"serviceAccountName": "robot", "nodeName": "n"})
    await store(objects.pods, "homeless", spec={"serviceAccountName": "robot", "nodeName": "gone"})
    await store(objects.pods, "others", spec={"serviceAccountName": "other"})
    await store(objects.secrets, "s")
    await store(objects.nodes, "n")
    for registry in registries.opened:
        await registry.start()
    config = ServiceAccountConfig(write_key(tmp_path / "sa.key"), issuers=(ISSUER,))
    yield Api(objects, config, [])
    for registry in registries.opened:
        await registry.stop()
    await opened.close()


def bound(kind: str, name: str, **rest: str) -> Json:
    return {"kind": kind, "apiVersion": "v1", "name": name, **rest}


async def test_default_token_has_the_server_audience_and_one_hour(api: Api) -> None:
    answer = await api.ask()
    assert answer["spec"] == {"audiences": [ISSUER], "expirationSeconds": 3600}
    assert answer["metadata"] == {
        "name": "robot",
        "namespace": "ns",
        "uid": "u-robot",
        "creationTimestamp": "2026-05-01T12:00:00Z",
    }
    assert answer["status"]["expirationTimestamp"] == "2026-05-01T13:00:00Z"


async def test_token_has_the_requested_audiences_and_expiration(api: Api) -> None:
    said = await api.claims(audiences=["vault", "db"], expirationSeconds=600)
    assert said.pop("jti")
    assert said == {
        "aud": ["vault", "db"],
        "exp": NOON_SECONDS + 600,
        "iat": NOON_SECONDS,
        "iss": ISSUER,
        "kubernetes.io": {"namespace": "ns", "serviceaccount": {"name": "robot", "uid": "u-robot"}},
        "nbf": NOON_SECONDS,
        "sub": "system:serviceaccount:ns:robot",
    }


async def test_no_two_tokens_are_the_same(api: Api) -> None:
    assert (await api.claims())["jti"] != (await api.claims())["jti"]


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        (bound("Secret", "s"), {"secret": {"name": "s", "uid": "u-s"}}),
        (bound("Node", "n", uid="u-n"), {"node": {"name": "n", "uid": "u-n"}}),
        (bound("Pod", "its"), {"pod": {"name": "its", "uid": "u-its"}, "node": {"name": "n", "uid": "u-n"}}),
        (bound("Pod", "homeless"), {"pod": {"name": "homeless", "uid": "u-homeless"}, "node": {"name": "gone"}}),
    ],
)
async def test_token_names_the_bound_object(ref: Json, said: Json, api: Api) -> None:
    private = (await api.claims(boundObjectRef=ref))["kubernetes.io"]
    assert {kind: private[kind] for kind in ("secret", "node", "pod") if kind in private} == said


RECREATED = "the UID in record. The object might have been deleted and then recreated"

REFUSED: list[tuple[Json, type[StatusError], str]] = [
    (bound("Pod", "none"), NotFound, 'pods "none" not found'),
    (bound("Secret", "none"), NotFound, 'secrets "none" not found'),
    (bound("Node", "none"), NotFound, 'nodes "none" not found'),
    (
        bound("Pod", "others"),
        BadRequest,
        'cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name.',
    ),
    (bound("ConfigMap", "c"), BadRequest, "cannot bind token to object of type /v1, Kind=ConfigMap"),
    ({"kind": "Pod", "apiVersion": "a/v1"}, BadRequest, "cannot bind token to object of type a/v1, Kind=Pod"),
    ({"kind": "Deed", "apiVersion": "a/b/c"}, BadRequest, "cannot bind token to object of type /, Kind=Deed"),
    ({}, BadRequest, "cannot bind token to object of type /, Kind="),
    (
        bound("Pod", "its", uid="x"),
        Conflict,
        'Operation cannot be fulfilled on Pod "its": the UID in the bound object reference (x) does not match '
        + RECREATED,
    ),
]


@pytest.mark.parametrize(("ref", "error", "message"), REFUSED)
async def test_token_for_missing_bound_object_is_rejected(
    ref: Json, error: type[StatusError], message: str, api: Api
) -> None:
    with pytest.raises(error) as refusal:
        await api.ask(boundObjectRef=ref)
    assert refusal.value.message == message


@pytest.mark.parametrize(
    ("seconds", "why"),
    [
        (0, "0: may not specify a duration less than 10 minutes"),
        (599, "599: may not specify a duration less than 10 minutes"),
        ((1 << 32) + 1, "4294967297: may not specify a duration larger than 2^32 seconds"),
    ],
)
async def test_expiration_outside_the_bounds_is_invalid(seconds: int, why: str, api: Api) -> None:
    with pytest.raises(Invalid) as refusal:
        await api.ask(expirationSeconds=seconds)
    message = f'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: {why}'
    assert refusal.value.message == message


@pytest.mark.parametrize("seconds", [600, 1 << 32])
async def test_expiration_at_the_bounds_is_valid(seconds: int, api: Api) -> None:
    assert (await api.claims(expirationSeconds=seconds))["exp"] == NOON_SECONDS + seconds


async def test_the_request_is_for_the_account_in_the_path(api: Api) -> None:
    with pytest.raises(Invalid, match='"other": must match the service account name if specified'):
        await api.ask({"name": "other"})
    with pytest.raises(Invalid, match='"far": must match the service account namespace if specified'):
        await api.ask({"namespace": "far"})
    with pytest.raises(NotFound, match='serviceaccounts "none" not found'):
        await api.ask(name="none")
    await api.ask({"name": "robot", "namespace": "ns", "uid": "u-robot"})


async def test_uid_in_the_request_is_a_precondition(api: Api) -> None:
    with pytest.raises(Conflict) as refusal:
        await api.ask({"uid": "x"})
    assert refusal.value.message == (
        'Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "robot": '
        "the UID in the token request (x) does not match the UID of the service account (u-robot)"
    )


async def test_too_long_expiration_is_shortened_with_a_warning(api: Api) -> None:
    api.config = replace(api.config, max_expiration=7200)
    answer = await api.ask(expirationSeconds=7201)
    assert answer["spec"]["expirationSeconds"] == 7200
    assert api.warnings == ["requested expiration of 7201 seconds shortened to 7200 seconds"]


async def test_projected_tokens_are_extended_to_a_year(api: Api) -> None:
    asked: Json = {"boundObjectRef": bound("Pod", "its"), "expirationSeconds": 3607}
    said = await api.claims(**asked)
    assert said["exp"] == NOON_SECONDS + 365 * 24 * 3600
    assert said["kubernetes.io"]["warnafter"] == NOON_SECONDS + 3607
    answer = await api.ask(**asked)
    assert answer["status"]["expirationTimestamp"] == (NOON + timedelta(seconds=3607)).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize(
    ("config", "spec"),
    [
        ({"extend_expiration": False}, {"boundObjectRef": bound("Pod", "its")}),
        ({}, {}),
        ({}, {"boundObjectRef": bound("Secret", "s")}),
        ({}, {"boundObjectRef": bound("Pod", "its"), "audiences": ["vault"]}),
        ({}, {"boundObjectRef": bound("Pod", "its"), "expirationSeconds": 3608}),
    ],
)
async def test_other_tokens_are_not_extended(config: Json, spec: Json, api: Api) -> None:
    api.config = replace(api.config, **config)
    said = await api.claims(**{"expirationSeconds": 3607, **spec})
    assert said["exp"] < NOON_SECONDS + 3700
    assert "warnafter" not in said["kubernetes.io"]


async def test_unreadable_signing_key_is_an_internal_error(api: Api, tmp_path: Path) -> None:
    api.config = replace(api.config, signing_key_file=tmp_path / "none")
    with pytest.raises(InternalError, match="failed to generate token"):
        await api.ask()
