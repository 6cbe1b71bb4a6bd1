"""Memory that stays: every cache is bounded in bytes, or its keys are none that clients choose.

The source is read: `functools.cache` and `lru_cache` on functions with arguments, and dictionaries in which something
is looked up and then put (memos), stand only where the tables below say why no client can fill them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pilothouse

PACKAGE = Path(pilothouse.__file__).parent

CACHES = {
    "names of our own types, messages and tables": (
        "apiserver/openapi/definitions:_is_struct",
        "apiserver/openapi/definitions:PackagedDefinitions.v2",
        "apiserver/openapi/definitions:PackagedDefinitions.v3",
        "apiserver/openapi/route:parameters_of",
        "apiserver/storage/encryption/kms_service:message",
        "kube/core/pods/internal_form:_fields",
        "machinery/cel/admission:_shared_environment",
        "machinery/cel/front/checker:_instantiated",
        "machinery/cel/interpreter/dispatch:overload_function",
        "machinery/cel/library/rows:parse_type",
        "machinery/cel/library/table:functions",
        "machinery/schema/types:definition",
    ),
    "what is not known raises, and what raises is not kept": (
        "machinery/protobuf/messages:message_type",
        "machinery/wire_facts:_package",
        "machinery/wire_facts:facts_of",
    ),
    "a few numbers": (
        "apiserver/flowcontrol/shuffle_sharding:deal",
        "apiserver/server/known_features:known_gates",
        "apiserver/storage/sqlite/pipeline:_statement",
        "kube/admission/podsecurity/evaluator:_checks",
    ),
    "parts of paths that are installed, which are short": ("apiserver/openapi/operation:identifier",),
    "one registry of metrics": ("controllers/garbagecollector/controller:sync_errors",),
    "a function without arguments": (
        "controllers/podautoscaler/pod_use:PodUse.by_share",
        "extensions/openapi/publishing:_container",
    ),
    "ranges of addresses as they are stored, and few of them": ("controllers/servicecidrs:_network",),
    "the bound itself": ("machinery/bounded_cache:bounded_cache.decorate",),
}
"""Where results are kept by arguments, by why clients do not choose these."""

MEMOS = {
    "ends with its request, event or evaluation": (
        "apiserver/admission/interface:ReinvocationContext._values",
        "apiserver/admission/policy/validating_dispatcher:CollectedAnnotations._values",
        "apiserver/audit/annotations:Annotations._annotations",
        "apiserver/cel/authorization:Authorizations._answers",
        "apiserver/cel/evaluation:Activation",
        "apiserver/cel/evaluation:Activation._failed",
        "apiserver/http2/hpack:Decoder._begun",
        "apiserver/profiling/profile:_Encoder._functions",
        "apiserver/profiling/profile:_Encoder._places",
        "apiserver/profiling/profile:_Encoder._strings",
        "apiserver/storage/cacher/events:ChangeEvents._made",
        "apiserver/storage/cacher/events:WatchEvent._encoded",
        "client/rest/connect:AsgiResponse.headers",
        "extensions/schema/correlation:Link._children",
        "kube/admission/tolerations:TolerationIndex._longest",
        "kube/core/pods/warnings/containers:_SamePort._by_side",
        "kube/core/pods/warnings/containers:_SamePort._with_address",
        "kube/core/pods/warnings/volumes:_Paths._at",
        "kube/core/pods/warnings/volumes:_Paths._below",
        "kube/rbac/missing_rights:_Verbs._outside",
        "machinery/cel/admission:AdmissionCompiler._environments",
        "machinery/cel/front/checker:fresh",
        "machinery/cel/front/recovery:_Engine._depths",
        "machinery/cel/cost/estimate:_Estimation._entries",
        "machinery/cel/cost/estimate:_Estimation._locals",
        "machinery/cel/cost/estimate:_Estimation._paths",
        "machinery/cel/cost/estimate:_Estimation._sizes",
        "machinery/codec/yaml_nodes:_Composer._anchors",
        "machinery/selectors/requirement:Constraint.bounds",
        "scheduler/diagnosis:Diagnosis.nodes",
        "scheduler/plugins/spread_constraints:WorkloadSelectors._made",
        "bench/faults/faults:Connections._users",
        "bench/scope:Programs._by_agent",
        "nodes/containers/volumes:_Sources.texts",
        "nodes/kubelet/spdy_sessions:_SpdySession._streams",
        "nodes/running/exec_probes:_Trial.outcomes",
        "operator/conditions:Conditions",
        "operator/conditions:Status.undeclared",
    ),
    "ends with a stored object, or with a test": (
        "controllers/garbagecollector/graph:ObjectState._by_uid",
        "testing/in_thread:Sender._users",
        "testing/pytest_plugin/clusters:Clusters._known",
        "testing/pytest_plugin/clusters:Clusters._known_sets",
    ),
    "ends with a command": (
        "apiserver/storage/backup/etcd:EtcdSource._ends",
        "cli/cluster_objects/writing:ObjectWriter._uids",
        "cli/offline/server:KindPaths._paths",
        "cli/offline/validating:_Validation._known",
        "cli/offline/validating:_Validation._seen",
        "cli/stores/entry_checks:ReferenceChecks._custom",
        "cli/stores/entry_checks:ReferenceChecks._definitions",
        "cli/stores/entry_checks:ReferenceChecks._used",
        "cli/stores/entry_checks:EntryChecks._uids",
        "explore/runner:Explorer._learned",
        "explore/runner:verdicts",
    ),
    "our own types, resources, media types and registries": (
        "apiserver/discovery/handlers:AggregatedDocument._forms",
        "apiserver/registry/interface:_ABILITIES_BY_TYPE",
        "apiserver/storage/cacher/indexes:CacheIndexes._indexes",
        "builder/function_backed/registry:_types",
        "builder/server:APIServer.controller.controllers",
        "client/cache/informer_factory:SharedInformerFactory._informers",
        "client/cache/informer_factory:SharedInformerFactory._tasks",
        "apiserver/storage/cacher/cacher:_OF_STORES",
        "scheduler/framework:Framework._made",
        "scheduler/queue/scheduling_queue:QueueingHints._concerned",
        "client/workqueue/metrics:_collectors",
        "controllers/context:ControllerContext._informers",
        "controllers/context:_metrics_by_registry",
        "kube/rbac/bootstrap_policy:BootstrapObjects.by_kind",
        "kube/registries:Registries._by_identity",
        "kube/registries:Registries._by_resource",
        "machinery/apply/atoms:_ATOMS",
        "machinery/cel/interpreter/dispatch:Function._found",
        "machinery/schema/compiler:_compiled",
        "machinery/schema/printing:Printer._made",
        "machinery/schema/tree:_SHARED",
        "machinery/schema/tree:_STRUCTS",
        "operator/cluster:Cluster._caches",
        "operator/cluster:Cluster._gvks",
        "operator/cluster:Cluster._mappings",
        "operator/webhook_server:WebhookServer._former",
    ),
    "weak: ends with the last expression that uses the type": ("machinery/cel/front/types:_INTERNED",),
    "lines that our own code logs": ("apiserver/tracing/recording:OnceAMinute._last",),
    "files of the operator": (
        "builder/certificates:ServingCertificate._checked",
        "kube/admission/manifests:_Loading._files",
    ),
    "what is installed, as long as it is": (
        "aggregator/discovery/manager:DiscoveryManager._services",
        "apiserver/admission/interface:EquivalentResources._keys",
        "apiserver/endpoints/routes:VersionRoutes._routes",
        "builder/server:APIServer._versions",
        "controllers/garbagecollector/operations:KindMappings._found",
        "extensions/customresources/model:Schemas._compiled",
        "extensions/schema/rules/programs:TypedEnvironment._made",
        "extensions/customresources/served_definition:ServedDefinition._routes",
        "extensions/customresources/served_definition:ServedDefinition._views",
        "extensions/customresources/served_definition:SharedRegistries._registries",
    ),
    "what there is: others take it out": (
        "kube/admission/quota/plugin:ResourceQuota._locks",
        "nodes/kubelet/spdy_sessions:_SpdySession._streams",
    ),
    "nodes, their zones and labels, and the pods on them: as many as the API has": (
        "controllers/nodelifecycle/zones:Zones.queues",
        "nodes/fleet/addresses:PodAddresses._ranges",
        "scheduler/cache/cache:Cache._places",
        "scheduler/cache/node_info:NodeInfo.ports",
        "scheduler/cache/node_info:NodeInfo.requested",
        "scheduler/cache/tallies:Tally.places",
        "scheduler/plugins/places:Places._counts",
    ),
    "failures on nodes, forgotten after a time": ("controllers/daemon/controller:FailedPodsBackoff._waits",),
    "numbers of at most three digits, or bytes": (
        "apiserver/filters/request_metrics:_Series._by_code",
        "apiserver/http2/huffman:_Steps",
        "apiserver/serving/http1_exchange:_StatusLines",
    ),
    "bounded where it stands, in entries and in what each may take": (
        "apiserver/fair_thread:FairThreads._used",
        "apiserver/http2/hpack:_Names",
        "apiserver/storage/encryption/kms_provider:EnvelopeTransformer._keys",
        "machinery/apply/all_fields:shapes",
    ),
}
"""Dictionaries that grow with what is asked of them, by why clients cannot fill the memory with them."""


def test_no_cache_has_keys_that_clients_choose_unless_it_is_bounded() -> None:
    assert set(_in_package(caches_in)) == {place for places in CACHES.values() for place in places}


def test_no_dictionary_remembers_what_clients_choose() -> None:
    assert set(_in_package(memos_in)) == {place for places in MEMOS.values() for place in places}


PLANTED = """
from functools import cache, lru_cache
import functools

@lru_cache(maxsize=16)
def parse(text: str): ...

@functools.cache
def pool(): ...

short = lru_cache(16)(parse)

class Kept:
    def __init__(self):
        self.found, self.now, self.log = {}, {}, {}
        self.read = lru_cache(16)(self._read)

    @functools.lru_cache
    def method(self, text): ...

    def get(self, key):
        return self.found.get(key) or self._find(key)

    def _find(self, key):
        self.found[key] = key

    def follow(self, key):
        if key not in self.now:
            self.now[key] = key

    def forget(self, key):
        del self.now[key]

    def write(self, key):
        self.log["key"] = self.log.get("key") or key

class Names(dict):
    def __missing__(self, key):
        self[key] = key

_NAMES = {}

def name(key):
    return _NAMES.setdefault(key, key)

def walker():
    shapes = {}

    def walk(value):
        if value not in shapes:
            shapes[value] = value
        seen = {}
        seen[value] = seen.get(value)

    return walk
"""


def test_a_planted_cache_is_found() -> None:
    assert set(caches_in(PLANTED, "planted")) == {
        "planted:parse",
        "planted:short",
        "planted:Kept.__init__",
        "planted:Kept.method",
    }
    assert set(memos_in(PLANTED, "planted")) == {
        "planted:Kept.found",
        "planted:Names",
        "planted:_NAMES",
        "planted:shapes",
    }


def _in_package(find: Callable[[str, str], Iterator[str]]) -> Iterator[str]:
    for path in PACKAGE.rglob("*.py"):
        yield from find(path.read_text(), str(path.relative_to(PACKAGE).with_suffix("")))


def caches_in(source: str, module: str) -> Iterator[str]:
    """The functions with arguments that are cached without a bound in bytes, and those in which something is."""
    if "cache" not in source:
        return
    tree = ast.parse(source)
    for function, name in _functions(tree):
        cached = [each for each in function.decorator_list if _is_cache(each)]
        if cached and _has_arguments(function):
            yield f"{module}:{name}"
        own = [node for statement in function.body for node in _own(statement)]
        if any(isinstance(node, ast.Call) and _is_cache(node.func) for node in own):
            yield f"{module}:{name}"
    for statement in tree.body:
        is_assignment = isinstance(statement, ast.Assign | ast.AnnAssign)
        called = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
        if is_assignment and any(map(_is_cache, called)):
            yield f"{module}:{ast.unparse(statement).split()[0].rstrip(':')}"


def memos_in(source: str, module: str) -> Iterator[str]:
    """The dictionaries that outlive a call in which something is looked up, put where it is missing, and left.

    One from which entries are taken by their keys is no memo: it follows what there is.
    """
    tree = ast.parse(source)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Compare | ast.Call | ast.Subscript)]
    taken = {each for node in nodes for each in _taken(node)}
    looked_up = {each for node in nodes for each in _looked_up(node)}
    if "__missing__" not in source and not looked_up & {each for node in nodes for each in _put(node)} - taken:
        return
    for function, name in _functions(tree):
        if function.name in ("__init__", "__post_init__"):
            continue
        own = [node for statement in function.body for node in _own(statement)]
        outliving = {each for node in own for each in _put(node)} - _bound_in(function, own) - taken
        of, _, _ = name.rpartition(".")
        if function.name == "__missing__" and "self" in outliving:
            yield f"{module}:{of}"
        for each in outliving & looked_up:
            yield f"{module}:{each.replace('self', of)}"


def _functions(tree: ast.AST, within: str = "") -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    for node in ast.iter_child_nodes(tree):
        name = f"{within}.{node.name}".lstrip(".") if hasattr(node, "name") and isinstance(node.name, str) else within
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node, name
        yield from _functions(node, name)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without those of the functions in it."""
    yield node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for child in ast.iter_child_nodes(node):
        yield from _own(child)


def _is_cache(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(called) in ("cache", "lru_cache", "functools.cache", "functools.lru_cache")


def _has_arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    taken = function.args
    return bool(taken.posonlyargs or taken.args or taken.kwonlyargs or taken.vararg or taken.kwarg)


def _bound_in(function: ast.FunctionDef | ast.AsyncFunctionDef, own: list[ast.AST]) -> set[str]:
    """The names that are the function's own."""
    arguments = function.args
    named = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)} - {"self"}
    return named | {node.id for node in own if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _looked_up(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        yield ast.unparse(node.comparators[0])
    if (called := _method(node)) and called.attr in ("get", "setdefault"):
        yield ast.unparse(called.value)


def _put(node: ast.AST) -> Iterator[str]:
    """Of names and of attributes of the object itself."""
    is_put = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and not _is_constant(node.slice)
    place = node.value if isinstance(node, ast.Subscript) and is_put else None
    if (called := _method(node)) and called.attr == "setdefault":
        place = called.value
    if isinstance(place, ast.Name) or (isinstance(place, ast.Attribute) and isinstance(place.value, ast.Name)):
        shown = ast.unparse(place)
        if shown.startswith("self.") or isinstance(place, ast.Name):
            yield shown


def _taken(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Del):
        yield ast.unparse(node.value)
    if (called := _method(node)) and called.attr == "pop":
        yield ast.unparse(called.value)


def _method(node: ast.AST) -> ast.Attribute | None:
    return node.func if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None


def _is_constant(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant)
