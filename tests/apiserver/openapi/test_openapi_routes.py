"""Which operations a resource has, what they are called, and what they take and give."""

from __future__ import annotations

import pytest
from openapi_groups import CONFIG_MAPS, EVERYTHING, PODS, config_maps, core, served, storage

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.openapi.operation import operation_id, tags
from pilothouse.apiserver.openapi.resource_routes import resource_routes
from pilothouse.apiserver.openapi.route import STRING, Route
from pilothouse.apiserver.registry.resource import Names
from pilothouse.machinery.names import GroupVersionKind

NODE = GroupVersionKind("", "v1", "Node")
STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"


def routes(resource: ServedResource) -> dict[tuple[str, str], Route]:
    return {(route.method, route.path): route for route in resource_routes(core(resource), resource)}


def operations(resource: ServedResource) -> dict[str, str]:
    """`method path` to operation id, below the version."""
    return {
        f"{method} {path.removeprefix('/api/v1')}": operation_id(path, route.operation)
        for (method, path), route in routes(resource).items()
    }


def names(route: Route) -> set[str]:
    return {parameter.name for parameter in route.parameters}


def test_a_namespaced_resource_that_can_do_everything_has_all_operations() -> None:
    assert operations(config_maps()) == {
        "get /namespaces/{namespace}/configmaps": "listCoreV1NamespacedConfigMap",
        "post /namespaces/{namespace}/configmaps": "createCoreV1NamespacedConfigMap",
        "delete /namespaces/{namespace}/configmaps": "deleteCoreV1CollectionNamespacedConfigMap",
        "get /namespaces/{namespace}/configmaps/{name}": "readCoreV1NamespacedConfigMap",
        "put /namespaces/{namespace}/configmaps/{name}": "replaceCoreV1NamespacedConfigMap",
        "patch /namespaces/{namespace}/configmaps/{name}": "patchCoreV1NamespacedConfigMap",
        "delete /namespaces/{namespace}/configmaps/{name}": "deleteCoreV1NamespacedConfigMap",
        "get /configmaps": "listCoreV1ConfigMapForAllNamespaces",
        "get /watch/namespaces/{namespace}/configmaps": "watchCoreV1NamespacedConfigMapList",
        "get /watch/namespaces/{namespace}/configmaps/{name}": "watchCoreV1NamespacedConfigMap",
        "get /watch/configmaps": "watchCoreV1ConfigMapListForAllNamespaces",
    }


def test_a_cluster_scoped_resource_has_no_namespaces_and_only_the_verbs_of_its_storage() -> None:
    nodes = served(Names("nodes", kind="Node"), NODE, storage("get", "list"), namespaced=False)
    assert operations(nodes) == {"get /nodes": "listCoreV1Node", "get /nodes/{name}": "readCoreV1Node"}
    assert routes(nodes)["get", "/api/v1/nodes"].description == "list objects of kind Node"


def test_a_subresource_is_named_after_the_kind_of_its_resource_and_gives_its_own() -> None:
    scale = GroupVersionKind("autoscaling", "v1", "Scale")
    controllers = Names("replicationcontrollers", kind="ReplicationController")
    found = routes(served(controllers, scale, storage("get", "update"), subresource="scale"))
    path = "/api/v1/namespaces/{namespace}/replicationcontrollers/{name}/scale"
    assert {method for method, _ in found} == {"get", "put", "patch"}
    read = found["get", path]
    assert operation_id(path, read.operation) == "readCoreV1NamespacedReplicationControllerScale"
    assert read.description == "read scale of the specified ReplicationController"
    assert (read.kind, read.responses) == (scale, {200: "io.k8s.api.autoscaling.v1.Scale"})


def test_what_is_created_under_a_given_name_is_posted_to_the_subresource() -> None:
    eviction = GroupVersionKind("policy", "v1", "Eviction")
    found = routes(served(PODS, eviction, storage("create_named"), subresource="eviction"))
    [((method, path), route)] = found.items()
    assert (method, path) == ("post", "/api/v1/namespaces/{namespace}/pods/{name}/eviction")
    assert route.description == "create eviction of a Pod"


def test_every_write_takes_field_validation_because_kubectl_looks_for_it() -> None:
    found = routes(config_maps())
    writes = [route for (method, _), route in found.items() if method in ("post", "put", "patch")]
    assert len(writes) == 3
    assert all({"fieldValidation", "fieldManager", "dryRun"} <= names(route) for route in writes)
    assert all(parameter.description for route in found.values() for parameter in route.parameters)


def test_only_patches_can_force_and_they_have_their_own_media_types() -> None:
    found = routes(config_maps())
    assert [method for (method, _), route in found.items() if "force" in names(route)] == ["patch"]
    patch = found["patch", "/api/v1/namespaces/{namespace}/configmaps/{name}"]
    assert "application/strategic-merge-patch+json" in patch.consumes
    assert "application/apply-patch+yaml" in patch.consumes


def test_deleting_a_collection_selects_as_lists_do_but_never_watches() -> None:
    route = routes(config_maps())["delete", "/api/v1/namespaces/{namespace}/configmaps"]
    assert {"labelSelector", "limit", "propagationPolicy"} <= names(route)
    assert not {"watch", "allowWatchBookmarks", "preconditions"} & names(route)


@pytest.mark.parametrize(("returns_object", "answer"), [(False, STATUS), (True, "io.k8s.api.core.v1.ConfigMap")])
def test_a_delete_answers_a_status_or_the_deleted_object(returns_object: bool, answer: str) -> None:
    kind = GroupVersionKind("", "v1", "ConfigMap")
    resource = served(CONFIG_MAPS, kind, storage(*EVERYTHING), returns_deleted_object=returns_object)
    route = routes(resource)["delete", "/api/v1/namespaces/{namespace}/configmaps/{name}"]
    assert route.responses == {200: answer, 202: answer}


def test_a_connection_has_its_options_as_parameters_and_is_named_after_its_method() -> None:
    options = GroupVersionKind("", "v1", "PodExecOptions")
    able = storage("connect", methods=frozenset({"GET", "POST"}))
    found = routes(served(PODS, options, able, subresource="exec"))
    path = "/api/v1/namespaces/{namespace}/pods/{name}/exec"
    assert set(found) == {("get", path), ("post", path)}
    route = found["get", path]
    assert operation_id(path, route.operation) == "connectCoreV1GetNamespacedPodExec"
    assert names(route) == {"stdin", "stdout", "stderr", "tty", "container", "command", "name", "namespace"}
    assert (route.action, route.produces, route.responses) == ("connect", ("*/*",), {200: STRING})


def test_a_proxy_is_also_served_below_its_path() -> None:
    options = GroupVersionKind("", "v1", "NodeProxyOptions")
    able = storage("connect", methods=frozenset({"GET"}))
    found = operations(served(Names("nodes", kind="Node"), options, able, subresource="proxy", namespaced=False))
    assert found == {
        "get /nodes/{name}/proxy": "connectCoreV1GetNodeProxy",
        "get /nodes/{name}/proxy/{path}": "connectCoreV1GetNodeProxyWithPath",
    }


def test_a_log_is_read_as_text_with_options_of_its_own() -> None:
    able = storage(
        "connect",
        methods=frozenset({"GET"}),
        get_options=GroupVersionKind("", "v1", "PodLogOptions"),
        media_types=("text/plain",),
    )
    [route] = routes(served(PODS, GroupVersionKind("", "v1", "Pod"), able, subresource="log")).values()
    assert operation_id(route.path, route.operation) == "readCoreV1NamespacedPodLog"
    assert (route.action, route.produces[0], route.responses) == ("get", "text/plain", {200: STRING})
    assert {"follow", "tailLines", "pretty"} <= names(route)


@pytest.mark.parametrize(
    ("path", "operation", "expected"),
    [
        ("/apis/apps/v1/x", "listNamespacedDeployment", ("listAppsV1NamespacedDeployment", "apps_v1")),
        ("/apis/storage.k8s.io/v1/x", "readCSINode", ("readStorageV1CSINode", "storage_v1")),
        ("/apis/open-api.example.com/v1/x", "patchShelf", ("patchOpenApiExampleComV1Shelf", "openApiExampleCom_v1")),
        ("/api/", "getAPIVersions", ("getCoreAPIVersions", "core")),
        ("/apis/", "getAPIVersions", ("getAPIVersions", "apis")),
        ("/version/", "getCodeVersion", ("getCodeVersion", "version")),
        ("/apis/3scale.net/v1/x", "listThing", ("listScaleNetV1Thing", "ScaleNet_v1")),
    ],
)
def test_operation_ids_and_tags_carry_the_group_and_version(
    path: str, operation: str, expected: tuple[str, str]
) -> None:
    assert (operation_id(path, operation), tags(path)) == (expected[0], [expected[1]])


def test_an_operation_without_a_verb_is_refused() -> None:
    with pytest.raises(ValueError, match="start with a verb"):
        operation_id("/version/", "versionOfTheCode")
