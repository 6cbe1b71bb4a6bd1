"""The environment of an extension server: a cluster, or none (standalone).

A cluster authenticates and authorizes users, has the namespaces, and registers the server. A standalone server grants
everything to the user of the kubeconfig that it writes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import field, replace
from functools import partial
from ipaddress import ip_address
from pathlib import Path

from pilothouse.apiserver.authn.interface import Authenticator
from pilothouse.apiserver.authn.request_header import STANDARD, RequestHeaders
from pilothouse.apiserver.authz.always import AlwaysAllow
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.server.run import Background
from pilothouse.apiserver.serving.tls_context import TlsFiles
from pilothouse.apiserver.serving.tls_options import KeyPair
from pilothouse.builder.certificates import ServingCertificate, keep_ca_bundle
from pilothouse.builder.command import Options
from pilothouse.builder.delegated_auth import DelegatedAuthentication, delegated_authentication, delegated_authorizer
from pilothouse.builder.extension_service import ExtensionService, is_local, on_this_machine
from pilothouse.builder.registration import RECORD, Registration, has_endpoint_service, refuses_external_names
from pilothouse.client.config.kubeconfig import load_in_cluster, load_kubeconfig
from pilothouse.client.config.model import ClientConfig, ConfigError
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import connect
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound

ALL_ADDRESSES = "0.0.0.0"
"""IPv6 included, where the machine has IPv6."""
_UNREACHABLE = (
    "the cluster connects to endpoints (--enable-aggregator-routing), and endpoints cannot have loopback addresses: "
    "set --bind-address=0.0.0.0"
)
_QPS, _BURST = 200.0, 400
"""Upstream's limits for delegated reviews, which client requests trigger."""


@dataclass
class Cluster:
    """A reachable cluster, and the parts of the server that depend on it."""

    place: ExtensionService
    config: ClientConfig
    in_cluster: bool
    """Whether the server runs in a pod of the cluster."""
    client: Client
    authentication: DelegatedAuthentication
    authorizer: Authorizer
    tls_files: TlsFiles
    certificate: ServingCertificate | None
    """None if certificate files are given."""
    registers: bool
    record: Path
    """File that records the registered objects."""
    bind_address: str
    anonymous: bool = True
    front_proxy: tuple[RequestHeaders, ...] = (STANDARD,)
    _registration: Registration | None = field(default=None, init=False)

    @property
    def authenticator(self) -> Authenticator:
        return self.authentication.authenticator

    @property
    def namespace_phase(self) -> Callable[[str], Awaitable[str | None]] | None:
        return NamespacePhases(self.client)

    @property
    def ca_file(self) -> Path:
        return self.certificate.ca_file if self.certificate else self.tls_files.serving.cert_file

    @property
    def background(self) -> Background:
        certificate = self.certificate
        return {"serving-certificate": lambda: certificate.renew(self._keep_ca_bundle)} if certificate else {}

    async def register(self, port: int) -> None:
        """Register the server if --register is set; otherwise publish the CA of its certificate."""
        if self.certificate is None:
            return
        if self.registers:
            self._registration = registration = Registration(self.client, self.record)
            on_machine = partial(
                on_this_machine,
                self.place,
                cluster=self.config.host,
                port=port,
                ca_bundle=self.certificate.ca_bundle,
            )
            routed = await has_endpoint_service(self.client, self.place)
            await registration.put(on_machine(routed=routed))
            if not routed and await refuses_external_names(self.client, self.place):
                if ip_address(self.bind_address).is_loopback:
                    await registration.remove()
                    raise ConfigError(_UNREACHABLE)
                await registration.put(on_machine(routed=True))
        else:
            await self._keep_ca_bundle()

    async def _keep_ca_bundle(self) -> None:
        assert self.certificate is not None, "the CA is known only for a certificate of our own"
        await keep_ca_bundle(self.client, self.place, self.certificate.ca_bundle)

    async def unregister(self) -> None:
        if self._registration is not None:
            await self._registration.remove()


@dataclass
class Standalone:
    """An environment without a cluster."""

    place: ExtensionService
    authenticator: Authenticator
    tls_files: TlsFiles
    folder: Path
    bind_address: str
    authorizer: Authorizer = field(default_factory=AlwaysAllow)
    anonymous: bool = False
    front_proxy: tuple[RequestHeaders, ...] = ()
    client: Client | None = None
    namespace_phase: None = None

    @property
    def ca_file(self) -> Path:
        from pilothouse.controlplane.certificates.paths import CertificatePaths

        return CertificatePaths.under(self.folder).ca_cert

    @property
    def background(self) -> Background:
        return {}

    async def register(self, port: int) -> None:
        """No-op: there is no cluster."""

    async def unregister(self) -> None:
        """Do nothing: nothing was registered."""

    def write_kubeconfig(self, url: str) -> Path:
        from pilothouse.controlplane.certificates.ensure import write_kubeconfig
        from pilothouse.controlplane.certificates.paths import CertificatePaths

        paths, file = CertificatePaths.under(self.folder), self.folder / "admin.kubeconfig"
        write_kubeconfig(file, server_url=url, ca=paths.ca_cert, cert=paths.admin_cert, key=paths.admin_key)
        return file


async def open_cluster(place: ExtensionService, options: Options, opened: AsyncExitStack) -> Cluster | Standalone:
    """Return the environment of the server. `opened` closes its resources.

    Raises ConfigError without a cluster configuration, StatusError if the cluster rejects the server.
    """
    if options.extension.standalone:
        return _standalone(place, options)
    config, in_cluster = _find(options.extension.kubeconfig)
    if in_cluster:
        place = replace(place, namespace=config.namespace)  # manifests may set another namespace
    client = await opened.enter_async_context(connect(replace(config, qps=_QPS, burst=_BURST)))
    authentication = delegated_authentication(client, options.data_dir / "trust")
    await authentication.start()
    opened.push_async_callback(authentication.stop)
    given, certificate = options.secure_serving.given_pair, None
    if given is None:
        certificate = ServingCertificate(options.data_dir / "pki", place)
        if in_cluster:
            await certificate.share(client)
        certificate.keep()
    pair = given or (certificate.pair if certificate else None)
    assert pair is not None
    return Cluster(
        place,
        config,
        in_cluster,
        client,
        authentication,
        delegated_authorizer(client),
        TlsFiles(pair, client_cas=authentication.client_cas),
        certificate,
        options.extension.register,
        options.data_dir / RECORD,
        _bind_address(options, config, in_cluster=in_cluster),
    )


def _find(kubeconfig: str) -> tuple[ClientConfig, bool]:
    """Return the client configuration, and whether the server runs in a pod. Raises ConfigError."""
    if kubeconfig:
        return load_kubeconfig(Path(kubeconfig)), False
    try:
        return load_in_cluster(), True
    except ConfigError:
        return load_kubeconfig(), False


def _bind_address(options: Options, config: ClientConfig, *, in_cluster: bool) -> str:
    """Return --bind-address; by default all addresses, unless only programs on this machine connect."""
    if "bind-address" in options.given:
        return options.secure_serving.bind_address
    has_remote_clients = in_cluster or options.extension.register or not is_local(config.host)
    return ALL_ADDRESSES if has_remote_clients else options.secure_serving.bind_address


def _standalone(place: ExtensionService, options: Options) -> Standalone:
    from pilothouse.apiserver.authn.authorities import AuthorityFiles
    from pilothouse.apiserver.authn.x509 import X509Authenticator
    from pilothouse.controlplane.certificates.ensure import ensure_certificates

    paths = ensure_certificates(options.data_dir, bind_address=options.secure_serving.bind_address)
    pair = options.secure_serving.given_pair or KeyPair(paths.serving_cert, paths.serving_key)
    users = X509Authenticator(AuthorityFiles([paths.ca_cert]))
    tls_files = TlsFiles(pair, client_cas=(paths.ca_cert,))
    return Standalone(place, users, tls_files, options.data_dir, options.secure_serving.bind_address)


_ACTIVE_TTL = 5.0
"""Seconds for which an active namespace is cached. A terminating namespace is read each time."""
_MAX_ENTRIES, _MAX_BYTES = 4096, 1 << 20


class NamespacePhases:
    """Returns the status.phase of a namespace by name; None if the namespace does not exist."""

    def __init__(self, client: Client) -> None:
        self._namespaces = client.resource("v1", "namespaces")
        self._active: BoundedCache[str, str] = BoundedCache(entries=_MAX_ENTRIES, total_bytes=_MAX_BYTES)

    async def __call__(self, name: str) -> str | None:
        known = self._active.get(name)
        if known is not None:
            return known
        try:
            namespace = await self._namespaces.get(name)
        except NotFound:
            return None
        phase = str((namespace.get("status") or {}).get("phase") or "Active")
        if phase == "Active":
            self._active.put(name, phase, size=len(name), ttl=_ACTIVE_TTL)
        return phase
