"""What surrounds an extension server: the cluster that it is part of, or nothing.

A cluster says who users are and what they may do, has the namespaces, and is told where the server is. Without one,
whoever has the kubeconfig that the server writes may do everything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import field, replace
from pathlib import Path

from pilothouse.apiserver.authn.interface import Authenticator
from pilothouse.apiserver.authn.request_header import STANDARD, RequestHeaders
from pilothouse.apiserver.authz.always import AlwaysAllow
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.server.run import Background
from pilothouse.apiserver.serving.certificate_files import KeyPair
from pilothouse.apiserver.serving.tls_context import TlsFiles
from pilothouse.builder.certificates import ServingCertificate, keep_ca_bundle
from pilothouse.builder.delegation.authentication import DelegatedAuthentication, delegated_authentication
from pilothouse.builder.delegation.authorization import delegated_authorizer
from pilothouse.builder.namespaces import NamespacePhases
from pilothouse.builder.options import Options
from pilothouse.builder.place import Place, on_this_machine
from pilothouse.builder.registration import RECORD, Registration
from pilothouse.client.config.in_cluster import load_in_cluster
from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.client.config.model import ClientConfig, ConfigError
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import connect
from pilothouse.machinery.dataclass import dataclass

_QPS, _BURST = 200.0, 400
"""Reviews are asked for by the requests of clients; upstream's limits for delegation."""


@dataclass
class Cluster:
    """A cluster that can be reached, with all that the server takes from it."""

    place: Place
    config: ClientConfig
    in_cluster: bool
    """Whether the server runs in a pod of it."""
    client: Client
    authentication: DelegatedAuthentication
    authorizer: Authorizer
    tls_files: TlsFiles
    certificate: ServingCertificate | None
    """None where certificate files were given."""
    registers: bool
    record: Path
    """Where the server writes down what it registered."""
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
        """Tell the cluster where the server is, where that was asked for, and which CA its certificate is from."""
        if self.certificate is None:
            return
        if self.registers:
            bundle = self.certificate.ca_bundle
            self._registration = Registration(self.client, self.record)
            await self._registration.put(
                on_this_machine(self.place, cluster=self.config.host, port=port, ca_bundle=bundle)
            )
        else:
            await self._keep_ca_bundle()

    async def _keep_ca_bundle(self) -> None:
        assert self.certificate is not None, "only who makes the certificate knows its CA"
        await keep_ca_bundle(self.client, self.place, self.certificate.ca_bundle)

    async def unregister(self) -> None:
        if self._registration is not None:
            await self._registration.remove()


@dataclass
class Standalone:
    """No cluster."""

    place: Place
    authenticator: Authenticator
    tls_files: TlsFiles
    folder: Path
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
        """There is nowhere to."""

    async def unregister(self) -> None:
        """Nothing was registered."""

    def write_kubeconfig(self, url: str) -> Path:
        from pilothouse.controlplane.certificates.kubeconfig import write_kubeconfig
        from pilothouse.controlplane.certificates.paths import CertificatePaths

        paths, file = CertificatePaths.under(self.folder), self.folder / "admin.kubeconfig"
        write_kubeconfig(file, server_url=url, ca=paths.ca_cert, cert=paths.admin_cert, key=paths.admin_key)
        return file


async def open_cluster(place: Place, options: Options, opened: AsyncExitStack) -> Cluster | Standalone:
    """Return what surrounds the server; what was opened for it is closed with `opened`.

    Raises ConfigError where no cluster can be found, and StatusError where it does not let this server ask it.
    """
    if options.extension.standalone:
        return _standalone(place, options)
    config, in_cluster = _find(options.extension.kubeconfig)
    if in_cluster:
        place = replace(place, namespace=config.namespace)  # the manifests may have put it into another than it says
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
    )


def _find(kubeconfig: str) -> tuple[ClientConfig, bool]:
    """Return the configuration, and whether this is a pod of the cluster. Raises ConfigError."""
    if kubeconfig:
        return load_kubeconfig(Path(kubeconfig)), False
    try:
        return load_in_cluster(), True
    except ConfigError:
        return load_kubeconfig(), False


def _standalone(place: Place, options: Options) -> Standalone:
    from pilothouse.apiserver.authn.authorities import AuthorityFiles
    from pilothouse.apiserver.authn.x509 import X509Authenticator
    from pilothouse.controlplane.certificates.ensure import ensure_certificates

    paths = ensure_certificates(options.data_dir, bind_address=options.secure_serving.bind_address)
    pair = options.secure_serving.given_pair or KeyPair(paths.serving_cert, paths.serving_key)
    users = X509Authenticator(AuthorityFiles([paths.ca_cert]))
    return Standalone(place, users, TlsFiles(pair, client_cas=(paths.ca_cert,)), options.data_dir)
