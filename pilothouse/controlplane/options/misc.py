"""Miscellaneous options: service network, endpoints, events, signing key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.controlplane.options.files import missing_files
from pilothouse.kube.config import DEFAULT_EVENT_TTL, LEASE, RECONCILER_TYPES, EndpointConfig
from pilothouse.kube.core.services.network import DEFAULT_CLUSTER_IP_RANGE, DEFAULT_NODE_PORTS, ServiceNetwork
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags import BOOL, DURATION, INT, STRING, flag


@dataclass(frozen=True)
class MiscOptions:
    title: ClassVar[str] = "misc"

    allow_privileged: bool = flag(
        "allow-privileged",
        BOOL,
        False,
        "Let pods ask for privileged containers. True by default with --simulated-nodes, and else false.",
    )
    apiserver_count: int = flag(
        "apiserver-count", INT, 1, "How many servers there are, for --endpoint-reconciler-type=master-count."
    )
    enable_logs_handler: bool = flag(
        "enable-logs-handler", BOOL, False, "Serve the files in /var/log at /logs. Deprecated by upstream."
    )
    endpoint_reconciler_type: str = flag(
        "endpoint-reconciler-type",
        STRING,
        LEASE,
        f"How the endpoints of the kubernetes service are kept ({', '.join(RECONCILER_TYPES)}).",
    )
    event_ttl: float = flag("event-ttl", DURATION, float(DEFAULT_EVENT_TTL), "How long events are kept.")
    service_account_signing_key_file: str = flag(
        "service-account-signing-key-file",
        STRING,
        "",
        "The RSA or ECDSA private key that signs tokens of service accounts. Without it, the key in --data-dir.",
    )
    service_cluster_ip_range: str = flag(
        "service-cluster-ip-range",
        STRING,
        "",
        f"One CIDR, or two of different families, for services. {DEFAULT_CLUSTER_IP_RANGE} if empty.",
    )
    service_node_port_range: str = flag(
        "service-node-port-range",
        STRING,
        f"{DEFAULT_NODE_PORTS[0]}-{DEFAULT_NODE_PORTS[-1]}",
        "The ports, first-last, that services may claim on nodes.",
    )

    @property
    def endpoints(self) -> EndpointConfig:
        return EndpointConfig(self.endpoint_reconciler_type, self.apiserver_count)

    @property
    def service_network(self) -> ServiceNetwork:
        first, _, last = self.service_node_port_range.partition("-")
        ranges = tuple(part.strip() for part in self.service_cluster_ip_range.split(","))
        return ServiceNetwork(ranges, range(int(first), int(last) + 1))

    def validate(self) -> Iterator[str]:
        yield from missing_files({"service-account-signing-key-file": self.service_account_signing_key_file})
        import ipaddress

        networks = []
        for text in self.service_cluster_ip_range.split(","):
            try:
                networks.append(ipaddress.ip_network(text.strip(), strict=False))
            except ValueError:
                yield f"service-cluster-ip-range is not a valid CIDR: {text.strip()}"
        if len(networks) > 2:
            yield "--service-cluster-ip-range must not contain more than two entries"
        if len(networks) == 2 and networks[0].version == networks[1].version:
            yield "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family"
        if any(network.num_addresses < 8 for network in networks):
            yield "the service cluster IP range must be at least 8 IP addresses"
        low, dash, high = self.service_node_port_range.partition("-")
        if not (dash and low.isdigit() and high.isdigit() and 0 < int(low) <= int(high) <= 65535):
            yield f'--service-node-port-range "{self.service_node_port_range}" is not a valid port range'
        if self.apiserver_count <= 0:
            yield f"--apiserver-count should be a positive number, but value '{self.apiserver_count}' provided"
        if self.endpoint_reconciler_type not in ("", *RECONCILER_TYPES):
            yield f"Reconciler not implemented: {self.endpoint_reconciler_type}"
        if self.event_ttl < 0:
            yield "--event-ttl can not be negative value"
