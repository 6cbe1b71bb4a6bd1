"""Monitors, the largest: pods several levels deep, many versions, and a scale."""

from __future__ import annotations

from schema_shapes import Shape, choice, flag, list_map, listing, number, rule, struct, table, text

from large_definitions.large import AGE, CONDITIONS, SELECTOR, Large, large
from large_definitions.pod_shapes import affinity, claim, container, volume

_RETENTION = "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?)$"
_COLUMNS = [
    {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"},
    {"name": "Ready", "type": "integer", "jsonPath": ".status.availableReplicas"},
    {"name": "Image", "type": "string", "jsonPath": ".spec.containers[0].image", "priority": 1},
    AGE,
]
_SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
_RULES = [rule("!has(self.replicas) || !has(self.shards) || self.replicas * self.shards <= 100", "too many replicas")]


def _remote() -> Shape:
    relabelling = struct(
        sourceLabels=listing(text("a", pattern="^[a-zA-Z_][a-zA-Z0-9_]*$")),
        action=choice("replace", "keep", "drop", default="replace"),
        modulus=number(3, format="int64"),
        regex=text("(.*)"),
    )
    return struct(
        ["url"],
        url=text("https://example.com/write", pattern="^https?://"),
        headers=table(text()),
        writeRelabelConfigs=listing(relabelling),
        queueConfig=struct(capacity=number(10), batchSendDeadline=text("5s")),
    )


def _spec() -> Shape:
    toleration = struct(key=text(), operator=text("Exists"), tolerationSeconds=number(5, format="int64"))
    spread = struct(["maxSkew"], maxSkew=number(1), topologyKey=text("zone"), labelSelector=SELECTOR)
    return struct(
        [],
        _RULES,
        replicas=number(2, minimum=0, default=1),
        shards=number(1, minimum=0),
        image=text("prometheus:v3"),
        retention=text("24h", pattern=_RETENTION),
        scrapeInterval=text("30s", default="30s"),
        externalLabels=table(text()),
        containers=list_map(container(), "name"),
        initContainers=list_map(container(), "name"),
        volumes=list_map(volume(), "name"),
        affinity=affinity(),
        tolerations=listing(toleration),
        topologySpreadConstraints=listing(spread),
        storage=struct(volumeClaimTemplate=claim(), disableMountSubPath=flag()),
        remoteWrite=listing(_remote()),
        podMonitorSelector=SELECTOR,
        serviceMonitorSelector=SELECTOR,
        additionalArgs=listing(struct(["name"], name=text("arg", minLength=1), value=text())),
    )


def monitors(versions: int = 6) -> Large:
    status = struct(
        replicas=number(2),
        availableReplicas=number(2),
        selector=text("app=prometheus"),
        conditions=CONDITIONS,
        shardStatuses=list_map(struct(["shardID", "replicas"], shardID=text("0"), replicas=number(2)), "shardID"),
    )
    return large(
        "Monitor",
        _spec(),
        status,
        versions=(*(f"v1alpha{number}" for number in range(1, versions)), "v1"),
        subresources={"status": {}, "scale": _SCALE},
        additionalPrinterColumns=_COLUMNS,
    )
