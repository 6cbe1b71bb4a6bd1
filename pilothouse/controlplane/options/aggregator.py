"""Aggregator: how the servers of other API groups are reached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.controlplane.options.files import missing_files
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import BOOL, STRING, flag


@dataclass(frozen=True)
class AggregatorOptions:
    title: ClassVar[str] = "aggregator"

    enable_routing: bool = flag(
        "enable-aggregator-routing",
        BOOL,
        False,
        "Reach Services by the addresses of their endpoints; if false, by their cluster IPs. "
        "Without it, by endpoints where there are ready ones, and otherwise by cluster IPs.",
    )

    reject_forwarding_redirect: bool = flag(
        "aggregator-reject-forwarding-redirect",
        BOOL,
        True,
        "Answer 502 where the server of another API group would send the client elsewhere.",
    )
    proxy_client_cert_file: str = flag(
        "proxy-client-cert-file",
        STRING,
        "",
        "The client certificate that is shown to the servers of other API groups. Without it, the one in --data-dir.",
    )
    proxy_client_key_file: str = flag("proxy-client-key-file", STRING, "", "The key of --proxy-client-cert-file.")

    def validate(self) -> Iterator[str]:
        if bool(self.proxy_client_cert_file) != bool(self.proxy_client_key_file):
            yield "--proxy-client-cert-file and --proxy-client-key-file must be specified together"
        yield from missing_files(
            {
                "proxy-client-cert-file": self.proxy_client_cert_file,
                "proxy-client-key-file": self.proxy_client_key_file,
            }
        )
