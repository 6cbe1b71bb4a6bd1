"""Which requests a webhook or a policy is about: rules, selectors, exclusions and equivalent resources."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apiserver.admission.interface import Attributes, EquivalentResources, Operation, ServedForm
from pilothouse.apiserver.admission.matching import Match, MatchCriteria, Matcher, is_exempt
from pilothouse.apiserver.admission.versioned import admit_change, versioned
from pilothouse.apiserver.authn.user import User
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema.object_type import DecodeError
from pilothouse.machinery.server_errors import InternalError

PODS = GroupVersionResource("", "v1", "pods")
NAMESPACES = GroupVersionResource("", "v1", "namespaces")
NEW, OLD = GroupVersionResource("apps", "v1", "things"), GroupVersionResource("apps", "v1beta1", "things")
STORED_NAMESPACES: dict[str, Json] = {"prod": {"metadata": {"name": "prod", "labels": {"env": "prod"}}}}


async def get_namespace(name: str) -> Json | None:
    return STORED_NAMESPACES.get(name)


MATCHER = Matcher(get_namespace)


def request(resource: GroupVersionResource = PODS, **rest: Any) -> Attributes:
    given: dict[str, Any] = {
        "operation": Operation.CREATE,
        "kind": GroupVersionKind(resource.group, resource.version, "Any"),
        "resource": resource,
        "subresource": "",
        "namespace": "prod",
        "name": "x",
        "user": User("u"),
        "obj": {"metadata": {"labels": {"app": "web"}}},
    }
    return Attributes(**given | rest)


def rule(**changed: Any) -> Json:
    return {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], **changed}


def hook(*rules: Json, **rest: Any) -> MatchCriteria:
    return MatchCriteria.of_webhook({"rules": rules, "namespaceSelector": {}, "objectSelector": {}, **rest})


def policy(**resources: Any) -> MatchCriteria:
    return MatchCriteria.of_match_resources({"namespaceSelector": {}, "objectSelector": {}, **resources})


@pytest.mark.parametrize(
    ("wanted", "attributes", "matches"),
    [
        (rule(), request(), True),
        (rule(operations=["UPDATE", "DELETE"]), request(), False),
        (rule(operations=["UPDATE", "CREATE"]), request(), True),
        (rule(apiGroups=["apps"]), request(), False),
        (rule(apiVersions=["v2"]), request(), False),
        (rule(resources=["pods"]), request(), True),
        (rule(resources=["services"]), request(), False),
        (rule(resources=["*"]), request(subresource="status"), False),
        (rule(resources=["pods"]), request(subresource="status"), False),
        (rule(resources=["*/*"]), request(subresource="status"), True),
        (rule(resources=["*/*"]), request(), True),
        (rule(resources=["pods/*"]), request(subresource="exec"), True),
        (rule(resources=["pods/*"]), request(NAMESPACES), False),
        (rule(resources=["*/status"]), request(subresource="status"), True),
        (rule(resources=["*/status"]), request(subresource="scale"), False),
        (rule(resources=["pods/status"]), request(), False),
        (rule(scope="Namespaced"), request(), True),
        (rule(scope="Cluster"), request(), False),
        (rule(scope="Cluster"), request(namespace=""), True),
        (rule(scope="Namespaced"), request(namespace=""), False),
        (rule(scope="Cluster"), request(NAMESPACES), True),
        (rule(scope="Namespaced"), request(NAMESPACES), False),
        (rule(scope="*"), request(), True),
    ],
)
async def test_a_rule_names_operations_resources_and_a_scope(
    wanted: Json, attributes: Attributes, matches: bool
) -> None:
    assert (await MATCHER.matches(attributes, hook(wanted)) is not None) == matches


async def test_a_webhook_without_rules_is_about_nothing_and_a_policy_about_everything() -> None:
    assert await MATCHER.matches(request(), hook()) is None
    assert await MATCHER.matches(request(), policy()) == Match(PODS, GroupVersionKind("", "v1", "Any"))


async def test_a_policy_may_name_objects_and_exclude_what_its_rules_name() -> None:
    named = policy(resourceRules=[rule(resourceNames=["y", "x"])])
    assert await MATCHER.matches(request(), named)
    assert await MATCHER.matches(request(name="z"), named) is None
    excluding = policy(resourceRules=[rule()], excludeResourceRules=[rule(resourceNames=["x"])])
    assert await MATCHER.matches(request(), excluding) is None
    assert await MATCHER.matches(request(name="z"), excluding)


async def test_the_labels_of_the_namespace_select() -> None:
    chosen = hook(rule(), namespaceSelector={"matchLabels": {"env": "prod"}})
    other = hook(rule(), namespaceSelector={"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]})
    assert await MATCHER.matches(request(), chosen)
    assert await MATCHER.matches(request(), other) is None


async def test_what_is_of_the_cluster_is_selected_whatever_the_namespace_selector() -> None:
    chosen = hook(rule(), namespaceSelector={"matchLabels": {"env": "none"}})
    assert await MATCHER.matches(request(namespace=""), chosen)


async def test_a_namespace_is_selected_by_the_labels_that_it_will_have() -> None:
    chosen = hook(rule(), namespaceSelector={"matchLabels": {"env": "prod"}})
    relabelled = request(NAMESPACES, operation=Operation.UPDATE, obj={"metadata": {"labels": {"env": "dev"}}})
    assert await MATCHER.matches(relabelled, chosen) is None
    assert await MATCHER.matches(
        request(NAMESPACES, namespace="new", obj={"metadata": {"labels": {"env": "prod"}}}), chosen
    )
    assert await MATCHER.matches(request(NAMESPACES, operation=Operation.DELETE, obj=None), chosen)


async def test_a_missing_namespace_is_an_error_only_where_everything_else_matches() -> None:
    chosen = hook(rule(resources=["pods"]), namespaceSelector={"matchLabels": {"env": "prod"}})
    with pytest.raises(NotFound, match='namespaces "gone" not found'):
        await MATCHER.matches(request(namespace="gone"), chosen)
    assert await MATCHER.matches(request(NAMESPACES, namespace="gone", operation=Operation.DELETE), chosen) is None


async def test_the_object_selects_as_it_was_or_as_it_will_be() -> None:
    chosen = hook(rule(), objectSelector={"matchLabels": {"app": "web"}})
    plain: Json = {"metadata": {}}
    labelled: Json = {"metadata": {"labels": {"app": "web"}}}
    assert await MATCHER.matches(request(obj=labelled), chosen)
    assert await MATCHER.matches(request(obj=plain, old=labelled), chosen)
    assert await MATCHER.matches(request(obj=None, old=labelled), chosen)
    assert await MATCHER.matches(request(obj=plain, old=plain), chosen) is None


async def test_what_has_no_metadata_is_selected_by_no_object_selector() -> None:
    unlabelled = hook(rule(), objectSelector={"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]})
    assert await MATCHER.matches(request(obj={"metadata": {}}), unlabelled)
    assert await MATCHER.matches(request(obj={"command": ["sh"]}, operation=Operation.CONNECT), unlabelled) is None


@pytest.fixture
def two_versions() -> EquivalentResources:
    """v1 is stored; v1beta1 calls `size` `width`."""
    equivalents = EquivalentResources()
    equivalents.register("things", "", ServedForm(NEW, GroupVersionKind("apps", "v1", "Thing"), read=_read))
    old = ServedForm(
        OLD,
        GroupVersionKind("apps", "v1beta1", "Thing"),
        read=_read,
        from_stored=_to_old,
        to_stored=_to_new,
    )
    equivalents.register("things", "", old)
    return equivalents


async def _to_old(obj: Json) -> Json:
    return {"apiVersion": "apps/v1beta1", "width": obj["size"]}


async def _to_new(obj: Json) -> Json:
    return {"apiVersion": "apps/v1", "size": obj["width"]}


def _read(value: Any) -> Json:
    if not isinstance(value, dict):
        raise DecodeError("json: cannot unmarshal")
    return value


async def test_a_rule_for_another_version_matches_where_equivalence_is_asked_for(
    two_versions: EquivalentResources,
) -> None:
    attributes = request(NEW, equivalents=two_versions)
    for_old = rule(apiVersions=["v1beta1"])
    assert await MATCHER.matches(attributes, hook(for_old, matchPolicy="Exact")) is None
    match = await MATCHER.matches(attributes, hook(for_old, matchPolicy="Equivalent"))
    assert match == Match(OLD, GroupVersionKind("apps", "v1beta1", "Thing"))
    both = hook(for_old, rule(apiVersions=["v1"]), matchPolicy="Equivalent")
    found = await MATCHER.matches(attributes, both)
    assert found == Match(NEW, attributes.kind), "what the request names comes first"
    excluding = policy(excludeResourceRules=[for_old], matchPolicy="Equivalent")
    assert await MATCHER.matches(attributes, excluding) is None


async def test_objects_are_shown_and_changed_in_the_version_that_the_rule_names(
    two_versions: EquivalentResources,
) -> None:
    obj: Json = {"apiVersion": "apps/v1", "size": 1}
    attributes = request(NEW, obj=obj, old={"apiVersion": "apps/v1", "size": 0}, equivalents=two_versions)
    seen = await versioned(attributes, Match(OLD, GroupVersionKind("apps", "v1beta1", "Thing")))
    assert seen.obj == {"apiVersion": "apps/v1beta1", "width": 1}
    assert seen.old == {"apiVersion": "apps/v1beta1", "width": 0}
    again = await admit_change(seen, {"apiVersion": "apps/v1beta1", "width": 2})
    assert obj == {"apiVersion": "apps/v1", "size": 2}
    assert again.obj == {"apiVersion": "apps/v1beta1", "width": 2}


async def test_a_change_into_something_else_is_refused_and_changes_nothing(two_versions: EquivalentResources) -> None:
    obj: Json = {"size": 1}
    no_object: Any = []
    attributes = request(NEW, obj=obj, equivalents=two_versions)
    seen = await versioned(attributes, Match(NEW, attributes.kind))
    with pytest.raises(InternalError, match="json: cannot unmarshal"):
        await admit_change(seen, no_object)
    assert obj == {"size": 1}


async def test_there_is_no_way_into_an_unknown_version() -> None:
    with pytest.raises(InternalError, match="unable to convert to apps/v1, Resource=things: unknown kind"):
        await versioned(request(), Match(NEW, GroupVersionKind("apps", "v1", "Thing")))


@pytest.mark.parametrize(("kind", "exempt"), [("MutatingWebhookConfiguration", True), ("ConfigMap", False)])
def test_what_configures_admission_is_exempt_from_it(kind: str, exempt: bool) -> None:
    registration = GroupVersionKind("admissionregistration.k8s.io", "v1", kind)
    assert is_exempt(request(kind=registration)) == exempt
