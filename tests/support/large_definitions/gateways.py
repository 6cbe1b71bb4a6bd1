"""Gateways: listeners in a list map with rules across its items."""

from __future__ import annotations

from schema_shapes import Shape, choice, list_map, listing, number, rule, struct, table, text

from large_definitions.large import AGE, CONDITIONS, GROUP, READY, SELECTOR, Large, large

_HOST = r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_COLUMNS = [
    {"name": "Class", "type": "string", "jsonPath": ".spec.gatewayClassName"},
    {"name": "Address", "type": "string", "jsonPath": ".status.addresses[*].value"},
    READY,
    AGE,
]
_RULES = [
    rule(
        "self.all(l, l.protocol in ['HTTP', 'TCP'] ? !has(l.tls) : true)",
        "tls must not be specified for protocols ['HTTP', 'TCP']",
    ),
    rule(
        "self.all(a, self.exists_one(b, a.port == b.port && a.protocol == b.protocol "
        "&& (has(a.hostname) && has(b.hostname) ? a.hostname == b.hostname : true)))",
        "Combination of port, protocol and hostname must be unique for each listener",
    ),
]


def _tls() -> Shape:
    reference = struct(["name"], name=text("cert", maxLength=253), kind=text(default="Secret"))
    return struct(
        [],
        [rule("self.mode != 'Terminate' || size(self.certificateRefs) > 0", "certificates must be there")],
        mode=choice("Terminate", "Passthrough", default="Terminate"),
        certificateRefs=listing(reference, maxItems=64),
        options=table(text(maxLength=4096), maxProperties=16),
    )


def _listener() -> Shape:
    route_kind = struct(["kind"], group=text(GROUP, maxLength=253), kind=text("Route", minLength=1, maxLength=63))
    allowed = struct(
        namespaces=struct(**{"from": choice("Same", "All", "Selector", default="Same")}, selector=SELECTOR),
        kinds=listing(route_kind, maxItems=8, **{"x-kubernetes-list-type": "atomic"}),
    ).but(default={"namespaces": {"from": "Same"}})
    return struct(
        ["name", "port", "protocol"],
        name=text("https", minLength=1, maxLength=253),
        hostname=text("*.example.com", maxLength=253, pattern=_HOST),
        port=number(443, minimum=1, maximum=65535),
        protocol=choice("HTTPS", "HTTP", "TLS", "TCP"),
        tls=_tls(),
        allowedRoutes=allowed,
    )


def gateways() -> Large:
    address = struct(
        ["value"], type=choice("IPAddress", "Hostname", default="IPAddress"), value=text("10.0.0.1", maxLength=253)
    )
    addresses = listing(address, maxItems=16)
    listeners = list_map(_listener(), "name", minItems=1, maxItems=64)
    spec = struct(
        ["gatewayClassName", "listeners"],
        gatewayClassName=text("edge", minLength=1, maxLength=253),
        listeners=listeners.but(**{"x-kubernetes-validations": _RULES}),
        addresses=addresses,
    )
    return large(
        "Gateway",
        spec,
        struct(addresses=addresses, conditions=CONDITIONS),
        versions=("v1alpha2", "v1beta1", "v1"),
        additionalPrinterColumns=_COLUMNS,
        selectableFields=[{"jsonPath": ".spec.gatewayClassName"}],
    )
