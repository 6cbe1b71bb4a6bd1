"""Settings of the kube server. Apart from the server, because flag parsing imports only this module."""

from __future__ import annotations

from pathlib import Path

from pilothouse.machinery.dataclass import dataclass

MASTER_COUNT, LEASE, NONE = RECONCILER_TYPES = ("master-count", "lease", "none")

DEFAULT_ISSUER = "https://kubernetes.default.svc"

DEFAULT_EVENT_TTL = 3600
"""Seconds."""

KUBELET_PORT = 10250
KUBELET_TIMEOUT = 5.0
KUBELET_ADDRESS_TYPES = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")


@dataclass(frozen=True, slots=True)
class EndpointConfig:
    reconciler_type: str = LEASE
    apiserver_count: int = 1
    """Number of servers, for the master-count reconciler."""


@dataclass(frozen=True, slots=True)
class ServiceAccountConfig:
    """Without files, tokens are neither issued nor trusted."""

    signing_key_file: Path | None = None
    key_files: tuple[Path, ...] = ()
    """Files of verifying keys; by default, the public part of the signing key."""
    issuers: tuple[str, ...] = (DEFAULT_ISSUER,)
    """Trusted issuers; the first issues tokens."""
    api_audiences: tuple[str, ...] = ()
    jwks_uri: str = ""
    max_expiration: int = 0
    """Seconds; 0 for no limit but the API's own."""
    extend_expiration: bool = True

    @property
    def audiences(self) -> tuple[str, ...]:
        return self.api_audiences or self.issuers

    @property
    def verifying_files(self) -> tuple[Path, ...]:
        return self.key_files or ((self.signing_key_file,) if self.signing_key_file else ())


@dataclass(slots=True)
class Capabilities:
    """Capabilities granted to pods. Set once at start from flags."""

    allow_privileged: bool = False


CAPABILITIES = Capabilities()
