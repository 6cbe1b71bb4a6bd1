"""What pods may say, as many operators repeat it in their own kinds."""

from __future__ import annotations

from schema_shapes import Shape, choice, flag, int_or_string, list_map, listing, number, quantity, struct, table, text

from large_definitions.large import SELECTOR

KEY = struct(["key"], name=text(default=""), key=text("k"), optional=flag())
LIMITS = table(quantity())


def affinity() -> Shape:
    term = struct(["topologyKey"], labelSelector=SELECTOR, namespaces=listing(text("ns")), topologyKey=text("zone"))
    preferred = struct(["weight"], weight=number(1, minimum=1, maximum=100), podAffinityTerm=term)
    pod_affinity = struct(
        requiredDuringSchedulingIgnoredDuringExecution=listing(term),
        preferredDuringSchedulingIgnoredDuringExecution=listing(preferred),
    )
    node_term = struct(
        matchExpressions=listing(struct(["key", "operator"], key=text(), operator=text("In"), values=listing(text())))
    )
    return struct(
        nodeAffinity=struct(
            requiredDuringSchedulingIgnoredDuringExecution=struct(nodeSelectorTerms=listing(node_term))
        ),
        podAffinity=pod_affinity,
        podAntiAffinity=pod_affinity,
    )


def _probe() -> Shape:
    return struct(
        httpGet=struct(["port"], port=int_or_string("web"), path=text("/ready"), scheme=choice("HTTP", "HTTPS")),
        tcpSocket=struct(["port"], port=int_or_string(8080)),
        exec=struct(command=listing(text("true"))),
        periodSeconds=number(5, format="int32"),
    )


def _variable() -> Shape:
    return struct(
        ["name"],
        name=text("PATH"),
        value=text(),
        valueFrom=struct(
            configMapKeyRef=KEY, secretKeyRef=KEY, fieldRef=struct(["fieldPath"], fieldPath=text("metadata.name"))
        ),
    )


def container() -> Shape:
    port = struct(["containerPort"], containerPort=number(8080), protocol=text("TCP", default="TCP"), name=text("web"))
    mount = struct(["mountPath", "name"], mountPath=text("/data"), name=text("data"))
    capabilities = struct(add=listing(text("NET_ADMIN")))
    return struct(
        ["name"],
        name=text("main"),
        image=text("image:1"),
        args=listing(text("--flag")),
        env=list_map(_variable(), "name"),
        ports=list_map(port, "containerPort", "protocol"),
        resources=struct(limits=LIMITS, requests=LIMITS),
        livenessProbe=_probe(),
        readinessProbe=_probe(),
        startupProbe=_probe(),
        volumeMounts=list_map(mount, "mountPath"),
        securityContext=struct(runAsUser=number(1000, format="int64"), capabilities=capabilities),
    )


def volume(kinds: int = 25) -> Shape:
    source = struct(name=text(), path=text("/x"), readOnly=flag(), items=listing(KEY))
    sources = {f"source{position}": source for position in range(kinds)}
    return struct(["name"], name=text("data"), emptyDir=struct(sizeLimit=quantity("5Gi")), **sources)


def claim() -> Shape:
    return struct(
        spec=struct(accessModes=listing(text("ReadWriteOnce")), resources=struct(requests=LIMITS), selector=SELECTOR),
        metadata=struct(labels=table(text()), name=text()),
    )
