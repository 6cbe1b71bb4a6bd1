"""Policies and bindings are written only by those who may read their parameters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer, Attributes, Decision
from pilothouse.apiserver.registry.operations import RequestContext, UpdateRequest
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.kube.admissionregistration.param_access import ParamCheckedStorage, ParamKindAccess, ParamRefAccess
from pilothouse.kube.admissionregistration.policies import VALIDATING_ADMISSION_POLICIES
from pilothouse.machinery.errors import Invalid
from pilothouse.machinery.field import root
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json

JANE = User("jane", "7", ("dev",), {"k": ("v",)})
SHOWN = "&{jane 7 [dev] map[k:[v]]}"
ADMIN = User("root", groups=("system:masters",))
CONFIG_MAP: Json = {"apiVersion": "v1", "kind": "ConfigMap"}


class Listing:
    """Allows what is on the list, by verb, resource, namespace and name."""

    def __init__(self, *allowed: tuple[str, str, str, str]) -> None:
        self.allowed = allowed

    async def authorize(self, attributes: Attributes) -> Answer:
        asked = (attributes.verb, attributes.resource, attributes.namespace, attributes.name)
        return Answer(Decision.ALLOW if asked in self.allowed else Decision.NO_OPINION)


def resolve(kind: GroupVersionKind) -> str | None:
    return "configmaps" if kind.kind == "ConfigMap" else None


def policy(kind: Json | None) -> Json:
    return {"spec": {"paramKind": kind}}


READ_ALL = ("get", "configmaps", "*", "*")


@pytest.mark.parametrize(
    ("user", "allowed", "new", "old", "may"),
    [
        (JANE, (), policy(None), None, True),
        (JANE, (), policy(CONFIG_MAP), None, False),
        (ADMIN, (), policy(CONFIG_MAP), None, True),
        (JANE, (READ_ALL,), policy(CONFIG_MAP), None, True),
        (JANE, (), policy(CONFIG_MAP), policy(CONFIG_MAP), True),
        (JANE, (), policy(CONFIG_MAP), policy(None), False),
        (JANE, (READ_ALL,), policy({"apiVersion": "v1", "kind": "Other"}), None, False),
        (JANE, (("get", "*", "*", "*"),), policy({"apiVersion": "v1", "kind": "Other"}), None, True),
    ],
)
async def test_a_policys_author_may_read_all_objects_of_the_kind(
    user: User, allowed: tuple[Any, ...], new: Json, old: Json | None, may: bool
) -> None:
    why = await ParamKindAccess(Listing(*allowed), resolve).refusal(user, new, old)
    assert (why == "") is may


async def test_the_refusal_names_user_and_kind() -> None:
    assert await ParamKindAccess(Listing(), resolve).refusal(JANE, policy(CONFIG_MAP), None) == (
        f'user {SHOWN} must have "get" permission on all objects of the referenced paramKind '
        "(kind=ConfigMap, apiVersion=v1)"
    )


def binding(policy_name: str = "p", **reference: Any) -> Json:
    return {"spec": {"policyName": policy_name, "paramRef": reference or None}}


async def find(name: str) -> Json | None:
    return {"p": policy(CONFIG_MAP), "odd": policy({"apiVersion": "v1", "kind": "Odd"})}.get(name)


EVERYTHING = 'does not have "get" permission for all groups, versions and resources'


@pytest.mark.parametrize(
    ("allowed", "new", "refusal"),
    [
        ((), binding(), ""),
        ((("get", "configmaps", "n", "c"),), binding(name="c", namespace="n"), ""),
        ((("list", "configmaps", "", ""),), binding(selector={}), ""),
        (
            (),
            binding(name="c"),
            f'user {SHOWN} does not have "get" permission on the object referenced by paramRef',
        ),
        (
            (),
            binding("none", name="c"),
            f"unable to get policy none to determine minimum required permissions and user {SHOWN} {EVERYTHING}",
        ),
        (
            (),
            binding("odd", name="c"),
            "unable to resolve paramKind &ParamKind{APIVersion:v1,Kind:Odd,} "
            f"to determine minimum required permissions and user {SHOWN} {EVERYTHING}",
        ),
    ],
)
async def test_a_bindings_author_may_read_what_it_refers_to(allowed: tuple[Any, ...], new: Json, refusal: str) -> None:
    assert await ParamRefAccess(Listing(*allowed), resolve, find).refusal(JANE, new, None) == refusal


async def test_a_reference_that_did_not_change_is_not_checked_again() -> None:
    access = ParamRefAccess(Listing(), resolve, find)
    assert await access.refusal(JANE, binding(name="c"), binding(name="c")) == ""
    assert await access.refusal(JANE, binding(name="c"), binding("odd", name="c")) != ""


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[RegistryStore]:
    store = await SqliteStore.open(tmp_path)
    yield RegistryStore(VALIDATING_ADMISSION_POLICIES, store)
    await store.close()


def context(user: User) -> RequestContext:
    return RequestContext("", VALIDATING_ADMISSION_POLICIES.group_resource, user, warn=lambda text: None)


async def allow(*_: Json) -> None:
    """Admission has nothing to say here."""


def whole_policy(**spec: Any) -> Json:
    rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
    whole = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}], **spec}
    obj = {"kind": "ValidatingAdmissionPolicy", "apiVersion": "x", "metadata": {"name": "p"}, "spec": whole}
    VALIDATING_ADMISSION_POLICIES.strategy.default(obj)
    return obj


async def test_the_storage_refuses_creates_and_updates_alike(registry: RegistryStore) -> None:
    checked = ParamCheckedStorage(registry, ParamKindAccess(Listing(), resolve), root("spec", "paramKind"))
    obj = whole_policy(paramKind=CONFIG_MAP)
    with pytest.raises(Invalid) as refused:
        await checked.create(context(JANE), obj, options=WriteOptions(), validate=allow)
    assert [cause["field"] for cause in (refused.value.details or {})["causes"]] == ["spec.paramKind"]
    await checked.create(context(JANE), whole_policy(), options=WriteOptions(), validate=allow)

    async def with_params(current: Json | None) -> Json:
        assert current is not None
        current["spec"]["paramKind"] = CONFIG_MAP
        return current

    async def update(user: User) -> None:
        asked = UpdateRequest(with_params, WriteOptions(), validate_create=allow, validate_update=allow)
        await checked.update(context(user), "p", asked)

    with pytest.raises(Invalid):
        await update(JANE)
    await update(ADMIN)
