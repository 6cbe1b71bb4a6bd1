"""Huge numbers in pods, quotas, networks, devices, definitions, policies and the server's own settings."""

from __future__ import annotations

from collections.abc import Iterator

from huge_number import (
    APPS,
    CORE,
    EXPONENT,
    HERE,
    INT32,
    INT64,
    NAMESPACE,
    PODS,
    ZEROS,
    HugeNumber,
    Json,
    an_object,
    gets,
    has_pods,
    has_status,
    pod_spec,
    workload,
)

_NODE = "node-1"
_METRICS = gets(f"/apis/metrics.k8s.io/v1beta1{HERE}pods", "/apis/metrics.k8s.io/v1beta1/nodes")
_RUNS = has_status(f"{PODS}/p", "startTime")
_WAITS = has_status(f"{PODS}/p", "conditions")


def _pod(**spec: object) -> tuple[str, Json]:
    return PODS, an_object("p", pod_spec(**spec))


def _annotated(**behavior: str) -> tuple[str, Json]:
    pod = an_object("p", pod_spec())
    pod["metadata"]["annotations"] = {
        f"pilothouse.dev/{name.replace('_', '-')}": said for name, said in behavior.items()
    }
    return PODS, pod


def _pods_on_a_node() -> Iterator[HugeNumber]:
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 1, "timeoutSeconds": INT32, "initialDelaySeconds": INT32}
    probes = {f"{name}Probe": {**probe, "failureThreshold": INT32} for name in ("startup", "liveness", "readiness")}
    yield HugeNumber("thresholds of probes", [_pod(container=probes)], _RUNS)
    grace = {"terminationGracePeriodSeconds": INT64, "activeDeadlineSeconds": INT32}
    hook = {"lifecycle": {"preStop": {"sleep": {"seconds": INT64}}}}
    yield HugeNumber("grace period and sleep of a hook", [_pod(**grace, container=hook)], _RUNS)
    tolerations = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": INT64}]
    spread: Json = {"maxSkew": INT32, "minDomains": INT32, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    spread["labelSelector"] = {"matchLabels": {"a": "b"}}
    spec = {"tolerations": tolerations, "topologySpreadConstraints": [spread]}
    yield HugeNumber("maxSkew, minDomains and tolerationSeconds", [_pod(**spec)], _WAITS)
    uses = _annotated(cpu="1e900000", memory="1e9000000%", exit_after="2540400h", exit_times=str(INT32), exit_code="1")
    yield HugeNumber("use of a simulated container", [uses], _RUNS, _METRICS)
    options = f"tailLines={INT64}&limitBytes={INT64}&sinceSeconds={INT64}"
    logs = gets(f"{PODS}/p/log?{options}", f"{PODS}?limit={INT64}&timeoutSeconds={INT32}")
    yield HugeNumber("lines and bytes of a log, limit of a list", [_annotated(logs="a\nb\n")], _RUNS, logs)
    exits = {"command": ["sh", "-c", f"exit {'9' * 5000}"]}
    yield HugeNumber("digits of an exit code", [_pod(container=exits, restartPolicy="Never")], _RUNS)
    many = [{"name": f"c{number}", "image": "i"} for number in range(100)]
    yield HugeNumber("containers of a pod", [_pod(containers=many)], _RUNS)


def _simulation() -> Iterator[HugeNumber]:
    behaviors, stages = (
        "/apis/simulation.pilothouse.dev/v1alpha1/simulatedbehaviors",
        "/apis/kwok.x-k8s.io/v1alpha1/stages",
    )
    container = {"exitTimes": INT32, "exitAfter": "2540400h", "cpu": "1e900000"}
    behavior = an_object("huge", {"priority": INT32, "selector": {"namespaces": [NAMESPACE]}, "container": container})
    behavior |= {"apiVersion": "simulation.pilothouse.dev/v1alpha1", "kind": "SimulatedBehavior"}
    yield HugeNumber("numbers of a SimulatedBehavior", [(behaviors, behavior), _pod()], _RUNS, _METRICS)
    pod = an_object("p", pod_spec())
    pod["metadata"]["labels"] = {"huge": "yes"}
    spec = {"resourceRef": {"apiGroup": "v1", "kind": "Pod"}, "selector": {"matchLabels": pod["metadata"]["labels"]}}
    status = "phase: Pending\nmessage: |{{ YAML .metadata.name 1000000000 }}\n"
    stage = an_object("huge", {**spec, "weight": INT32, "next": {"statusTemplate": status}})
    late = an_object("late", {**spec, "delay": {"durationMilliseconds": INT64}, "next": {"delete": True}})
    for each in (stage, late):
        each.update(apiVersion="kwok.x-k8s.io/v1alpha1", kind="Stage")
    yield HugeNumber("delay, weight and indent of a Stage", [(stages, stage), (stages, late), (PODS, pod)], _WAITS)


def _requesting(amounts: list[str]) -> tuple[str, Json]:
    """Return a pod with a container for each amount."""
    requests = [{"requests": {"cpu": amount}} for amount in amounts]
    containers = [{"name": f"c{n}", "image": "i", "resources": each} for n, each in enumerate(requests)]
    return _pod(containers=containers)


def _amounts() -> Iterator[HugeNumber]:
    limits = {"limits": {"memory": EXPONENT, "cpu": EXPONENT}}
    yield HugeNumber("exponent of a request", [_pod(container={"resources": limits})], _WAITS)
    steps = [f"1e{240 * step}" for step in range(40)]
    several = [
        {"name": f"c{n}", "image": "i", "resources": {"requests": {"cpu": each}}} for n, each in enumerate(steps)
    ]
    yield HugeNumber("sum of requests", [_pod(containers=several)], _WAITS)
    digits = [{"name": f"c{n}", "image": "i", "resources": {"requests": {"cpu": "1" + "0" * 3990}}} for n in range(100)]
    yield HugeNumber("digits of requests", [_pod(containers=digits)], _WAITS)
    hard = {"requests.memory": EXPONENT, "count/configmaps": EXPONENT, "persistentvolumeclaims": str(INT64)}
    quotas = f"{CORE}resourcequotas"
    quota = (quotas, an_object("q", {"hard": hard}))
    summed = [quota, _pod(container={"resources": {"requests": {"memory": "1Gi"}}})]
    other = (PODS, an_object("o", pod_spec(container={"resources": {"requests": {"memory": EXPONENT}}})))
    yield HugeNumber("sum of a quota", [*summed, other], has_status(f"{quotas}/q", "used"))
    ranges = {"type": "Container", "max": {"cpu": EXPONENT}, "default": {"cpu": EXPONENT}, "min": {"cpu": "1n"}}
    ranged = (f"{CORE}limitranges", an_object("l", {"limits": [{**ranges, "maxLimitRequestRatio": {"cpu": EXPONENT}}]}))
    yield HugeNumber("amounts of a LimitRange", [ranged, _pod()], _WAITS, answers=(201, 403, 422))
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": EXPONENT}}}
    claims = f"{CORE}persistentvolumeclaims"
    yield HugeNumber("size of a claim", [(claims, an_object("v", claim))], has_status(f"{claims}/v", "phase"))


def _devices() -> Iterator[HugeNumber]:
    group = "/apis/resource.k8s.io/v1"
    class_ = (f"{group}/deviceclasses", an_object("huge", {}))
    pool = {"name": "huge", "generation": INT64, "resourceSliceCount": 1}
    devices = [{"name": f"d{number}", "capacity": {"memory": {"value": EXPONENT}}} for number in range(128)]
    slice_ = {"driver": "huge.example.com", "pool": pool, "nodeName": _NODE, "devices": devices}
    slices = (f"{group}/resourceslices", an_object("huge", slice_))
    for mode in ({"count": INT64}, {"count": 33}, {"allocationMode": "All"}):
        exactly = {"deviceClassName": "huge", **mode}
        claim = an_object("c", {"devices": {"requests": [{"name": "r", "exactly": exactly}]}})
        pod = _pod(resourceClaims=[{"name": "c", "resourceClaimName": "c"}])
        objects = [class_, slices, (f"{group}{HERE}resourceclaims", claim), pod]
        yield HugeNumber(f"devices of a claim: {next(iter(mode.values()))}", objects, _WAITS)


def _networks() -> Iterator[HugeNumber]:
    cidrs = "/apis/networking.k8s.io/v1/servicecidrs"
    service = (f"{CORE}services", an_object("s", {"ports": [{"port": 65535}], "type": "NodePort"}))
    wide = [(cidrs, an_object("wide", {"cidrs": ["11.0.0.0/8", "2001:db8::/64"]})), service]
    yield HugeNumber("size of a ServiceCIDR", wide, has_status(f"{cidrs}/wide", "conditions"))
    ports = [{"port": 1, "endPort": 65535} for _ in range(1000)]
    blocks = [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["0.0.0.0/1"]}}]
    policy = {"podSelector": {}, "ingress": [{"ports": ports, "from": blocks}]}
    policies = f"/apis/networking.k8s.io/v1{HERE}networkpolicies"
    yield HugeNumber("ports of a NetworkPolicy", [(policies, an_object("n", policy))])
    affinity = {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": INT32}}}
    refused = an_object("s", {"ports": [{"port": 1}], **affinity})
    yield HugeNumber("timeout of a Service", [(f"{CORE}services", refused)], answers=(422,))
    node = an_object("wide", {"podCIDR": "0.0.0.0/0", "podCIDRs": ["0.0.0.0/0"]})
    node["status"] = {"capacity": {"pods": EXPONENT, "cpu": EXPONENT}, "allocatable": {"pods": EXPONENT}}
    yield HugeNumber("range and capacity of a node", [("/api/v1/nodes", node)], answers=(201, 422))


def _records() -> Iterator[HugeNumber]:
    lease = {"leaseDurationSeconds": INT32, "leaseTransitions": INT32, "renewTime": "9999-12-31T23:59:59.000000Z"}
    leases = f"/apis/coordination.k8s.io/v1{HERE}leases"
    yield HugeNumber("duration of a lease", [(leases, an_object("l", {"holderIdentity": "h", **lease}))])
    event: Json = {"involvedObject": {"namespace": NAMESPACE}, "count": INT32, "reason": "r", "message": "m"}
    yield HugeNumber("count of an event", [(f"{CORE}events", an_object("e", **event))])
    revision = an_object("huge", revision=INT64, data={})
    revision["metadata"]["labels"] = {"app": "s"}
    sets = f"{APPS}statefulsets"
    adopted = [(f"{APPS}controllerrevisions", revision), (sets, workload("s", replicas=1))]
    yield HugeNumber("number of a revision", adopted)
    token = {"spec": {"expirationSeconds": 2**32, "audiences": []}}
    account = [(f"{CORE}serviceaccounts", an_object("a"))]
    yield HugeNumber("expiry of a token", account, then=[("POST", f"{CORE}serviceaccounts/a/token", token)])


def _level(queuing: Json) -> Json:
    limited = {"nominalConcurrencyShares": INT32, "limitResponse": {"type": "Queue", "queuing": queuing}}
    return an_object("huge", {"type": "Limited", "limited": limited})


def _settings() -> Iterator[HugeNumber]:
    queuing = {"queues": 10_000_000, "handSize": 2, "queueLengthLimit": INT32}
    levels, level = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations", _level(queuing)
    schema = {"priorityLevelConfiguration": {"name": "huge"}, "matchingPrecedence": 10_000}
    schemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
    dumps = gets(*(f"/debug/api_priority_and_fairness/dump_{what}" for what in ("queues", "requests")), "/metrics")
    flow = [(levels, level), (schemas, an_object("huge", schema))]
    seen = has_status(f"{schemas}/huge", "conditions")
    yield HugeNumber("queues of a priority level", flow, seen, dumps)
    more = _level({**queuing, "handSize": 10_000_000})
    yield HugeNumber("hand of a priority level", [(levels, more)], answers=(422,))
    yield from _definitions()
    yield from _expressions()


def _definitions() -> Iterator[HugeNumber]:
    text = {"type": "string", "maxLength": INT64, "pattern": "^(a{1,1000}){1,1000}$"}
    rules = [{"rule": "self.all(x, self.all(y, x == y || x.size() > 1))"}]
    items: Json = {"type": "array", "maxItems": INT64, "items": text}
    for extra in ({}, {"x-kubernetes-validations": rules}):
        spec = {
            "type": "object",
            "properties": {"n": {"type": "integer", "multipleOf": 1e-300}, "l": {**items, **extra}},
        }
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        version = {"name": "v1", "served": True, "storage": True, "schema": schema}
        names = {"plural": "huges", "singular": "huge", "kind": "Huge", "listKind": "HugeList"}
        definition = {"group": "huge.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        objects = [(path, an_object("huges.huge.example.com", definition))]
        answers = (422,) if extra else (201, 422)
        yield HugeNumber(f"sizes of a schema{' with rules' if extra else ''}", objects, answers=answers)


def _expressions() -> Iterator[HugeNumber]:
    for name, expression in {
        "lists.range": f"lists.range({INT64}).size() > 0",
        "nested lists.range": "lists.range(900000).map(x, lists.range(900000)).size() > 0",
        "quantity": f"quantity('{EXPONENT}').isGreaterThan(quantity('1'))",
        "sum of quantities": f"quantity('1Gi').add(quantity('{EXPONENT}')).asApproximateFloat() > 0.0",
        "integer in text": f"int('{ZEROS}1') > 0",
    }.items():
        yield _expression(f"expression: {name}", expression)


def _expression(name: str, expression: str) -> HugeNumber:
    """Return a row with a policy that evaluates the expression for every ConfigMap of the namespace."""
    group = "/apis/admissionregistration.k8s.io/v1/"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
    spec: Json = {"validations": [{"expression": expression}], "matchConstraints": {"resourceRules": [rule]}}
    binding: Json = {"policyName": "huge", "validationActions": ["Audit"]}
    binding["matchResources"] = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}}
    objects = [
        (f"{group}validatingadmissionpolicies", an_object("huge", spec)),
        (f"{group}validatingadmissionpolicybindings", an_object("huge", binding)),
    ]
    config_maps = [("POST", f"{CORE}configmaps", an_object(f"c{number}")) for number in range(3)]
    seen = has_status(f"{group}validatingadmissionpolicies/huge", "observedGeneration")
    return HugeNumber(name, objects, seen, config_maps)


ORDINARY_NUMBERS: tuple[HugeNumber, ...] = (
    HugeNumber("replicas", [(f"{APPS}statefulsets", workload("s", replicas=3))], has_pods(3)),
    HugeNumber("logs and metrics", [_annotated(logs="a\n")], _RUNS, [*_METRICS, *gets(f"{PODS}/p/log")]),
    HugeNumber("metrics of the server", [], then=gets("/metrics")),
    _expression("expression", "quantity('1').isGreaterThan(quantity('0')) && lists.range(3).size() == 3"),
)
"""For warming up: the code that huge numbers reach is loaded afterwards."""

NUMBERS_ELSEWHERE: tuple[HugeNumber, ...] = (
    *_pods_on_a_node(),
    *_simulation(),
    *_amounts(),
    *_devices(),
    *_networks(),
    *_records(),
    *_settings(),
)
