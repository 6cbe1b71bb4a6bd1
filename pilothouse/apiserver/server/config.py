"""The common configuration of the three servers, complete before any server is created."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.authn.bearer import UnionTokenAuthenticator
from pilothouse.apiserver.authn.interface import Authenticator, TokenAuthenticator, UnionAuthenticator
from pilothouse.apiserver.authz.always import AlwaysAllow
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.endpoints.install import Installer
from pilothouse.apiserver.flowcontrol.controller import FlowController
from pilothouse.apiserver.http import Handler
from pilothouse.apiserver.openapi.definitions import OpenAPIDefinitions
from pilothouse.apiserver.server.features import CBOR_SERVING_AND_STORAGE, FeatureGates
from pilothouse.apiserver.server.health import HealthCheck
from pilothouse.apiserver.server.lifecycle import LifecycleSignals
from pilothouse.apiserver.server.metrics_of_many import Peers
from pilothouse.apiserver.server.resource_config import ResourceConfig
from pilothouse.apiserver.server.run_options import ServerRunOptions
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.apiserver.storage.interface import DEFAULT_ROOT, Store
from pilothouse.apiserver.webhook.service_resolver import NoServices, ServiceResolver
from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class GenericConfig:
    """The common configuration of a server chain. Create this first, then the servers, innermost first.

    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from pilothouse.apiserver import GenericConfig, SqliteStore, not_found
    >>> config = GenericConfig(await SqliteStore.open(Path(mkdtemp())))
    >>> config.new_server("wardle", not_found(config.lifecycle.mux_and_discovery_complete)).name
    'wardle'
    >>> await config.store.close()
    """

    store: Store
    key_prefix: str = DEFAULT_ROOT
    lifecycle: LifecycleSignals = field(default_factory=LifecycleSignals)
    health_checks: tuple[HealthCheck, ...] = ()
    resources: ResourceConfig = field(default_factory=ResourceConfig)
    features: FeatureGates = field(default_factory=FeatureGates)
    authenticator: Authenticator = field(default_factory=lambda: UnionAuthenticator([]))
    tokens: TokenAuthenticator = field(default_factory=lambda: UnionTokenAuthenticator([]))
    """The token authenticators of `authenticator`, for token reviews."""
    api_audiences: tuple[str, ...] = ()
    """The audiences that tokens must have."""
    authorizer: Authorizer = field(default_factory=AlwaysAllow)
    flow_control: FlowController | None = None
    """Priority and fairness; None if only max-in-flight limits apply."""
    run_options: ServerRunOptions = field(default_factory=ServerRunOptions)
    admission_plugins: frozenset[str] = frozenset()
    """The names of enabled plugins."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """The flags of the server, for /flagz."""
    services: ServiceResolver = field(default_factory=NoServices)
    """Resolves Services of webhooks and aggregated APIs."""

    definitions: OpenAPIDefinitions | None = None
    """The OpenAPI definitions of kinds that are not built in; upstream's GetOpenAPIDefinitions."""

    peers: Peers | None = None
    """The other processes of a server with several workers."""

    @property
    def speaks_cbor(self) -> bool:
        return self.features.enabled(CBOR_SERVING_AND_STORAGE)

    def installer(self, admission: AdmissionChain) -> Installer:
        """Return an installer of endpoints with this admission chain."""
        return Installer(admission, self.authorizer, self.run_options, speaks_cbor=self.speaks_cbor)

    def new_server(self, name: str, delegate: Handler) -> GenericAPIServer:
        """Return a server that delegates unknown paths."""
        return GenericAPIServer(
            name,
            delegate,
            lifecycle=self.lifecycle,
            health_checks=self.health_checks,
            definitions=self.definitions,
            peers=self.peers,
        )
