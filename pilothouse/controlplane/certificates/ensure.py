"""Generated files of a server: certificates, keys, kubeconfig.

    ensure_certificates(data_dir, bind_address="0.0.0.0", hostnames=["api.example"], service_ip="10.0.0.1")

issued.json records the digests of issued files. While the files match the record, are not due for renewal and cover the
wanted names, a restart only computes digests and does not import `cryptography`.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import socket
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pilothouse.controlplane.certificates.paths import CertificatePaths
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.files import PRIVATE, PUBLIC, make_directory, write_atomically
from pilothouse.nodes.simulated_kubelet import CLIENT_NAME, HOST, SERVER_NAME, SimulatedKubelet

FRONT_PROXY_CLIENT = "front-proxy-client"
_RECORD = "issued.json"


def ensure_certificates(
    data_dir: Path, *, bind_address: str, hostnames: Iterable[str] = (), service_ip: str = "10.0.0.1"
) -> CertificatePaths:
    """Create missing certificates, and renew expiring certificates. Raises CertificateError for inconsistent files."""
    paths = CertificatePaths.under(data_dir)
    names = serving_names(bind_address=bind_address, hostnames=hostnames, service_ip=service_ip)
    if not _is_current(paths, names):
        make_directory(paths.directory)
        _make(paths, names)
    return paths


def _make(paths: CertificatePaths, names: ServingNames) -> None:
    from pilothouse.controlplane.certificates.issue import RENEW_BEFORE, Profile, names_of
    from pilothouse.controlplane.certificates.keep import keep_certificate, keep_shared_keys

    ca, proxy_ca = keep_shared_keys(paths.directory)
    server = Profile("kube-apiserver", names=names)
    admin = Profile("kubernetes-admin", organizations=("system:masters",))
    proxy = Profile(FRONT_PROXY_CLIENT)
    chain = paths.cross_cert.read_bytes() if paths.cross_cert.exists() else b""
    serving = keep_certificate(server, ca, paths.serving_cert, paths.serving_key, chain=chain)
    issued = [
        serving,
        keep_certificate(admin, ca, paths.admin_cert, paths.admin_key),
        keep_certificate(proxy, proxy_ca, paths.front_proxy_client_cert, paths.front_proxy_client_key),
    ]
    renew_after = min(certificate.not_valid_after_utc - RENEW_BEFORE for certificate in issued)
    covered = names_of(serving)
    record = {
        "renewAfter": renew_after.timestamp(),
        "dns": sorted(covered.dns),
        "ips": sorted(covered.ips),
        "files": _digests(paths),
    }
    write_atomically(paths.directory / _RECORD, json.dumps(record, indent=2).encode(), mode=PUBLIC)


def _is_current(paths: CertificatePaths, names: ServingNames) -> bool:
    try:
        record = json.loads((paths.directory / _RECORD).read_bytes())
        noted = ServingNames(frozenset(record["dns"]), frozenset(record["ips"]))
        fresh = time.time() < record["renewAfter"]
        return fresh and noted.covers(names) and record["files"] == _digests(paths)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _digests(paths: CertificatePaths) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths.files if path.exists()}


_ALWAYS: Final = (
    "localhost",
    "127.0.0.1",
    "::1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


@dataclass(frozen=True, slots=True)
class ServingNames:
    dns: frozenset[str]
    ips: frozenset[str]

    def covers(self, other: ServingNames) -> bool:
        return self.dns >= other.dns and self.ips >= other.ips


def serving_names(*, bind_address: str, hostnames: Iterable[str], service_ip: str) -> ServingNames:
    """Return the names of the serving certificate. `hostnames` may hold names and addresses; wildcard addresses are
    skipped."""
    dns: set[str] = set()
    ips: set[str] = set()
    for name in (*_ALWAYS, socket.gethostname().lower(), bind_address, service_ip, *hostnames):
        address = _address(name)
        if address is None:
            dns.add(name)
        elif not address.is_unspecified:
            ips.add(str(address))
    return ServingNames(frozenset(dns - {""}), frozenset(ips))


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def simulated_kubelet(data_dir: Path) -> SimulatedKubelet:
    """Return the paths of the simulated kubelets' TLS files, which may not exist yet.

    The files have a separate CA, because the key of the cluster's CA may be elsewhere.
    """
    return SimulatedKubelet(data_dir / "simulated-kubelets")


def ensure_kubelet_certificates(data_dir: Path) -> SimulatedKubelet:
    """Create missing or expiring certificates of simulated kubelets. Raises CertificateError."""
    from pilothouse.controlplane.certificates.issue import Profile
    from pilothouse.controlplane.certificates.keep import keep_authority, keep_certificate

    files = simulated_kubelet(data_dir)
    make_directory(files.directory)
    authority = keep_authority("simulated-kubelets", files.ca_cert, files.ca_key)
    names = ServingNames(frozenset({SERVER_NAME}), frozenset({HOST}))
    keep_certificate(Profile("simulated-kubelet", names=names), authority, files.serving_cert, files.serving_key)
    keep_certificate(Profile(CLIENT_NAME), authority, files.client_cert, files.client_key)
    return files


_TEMPLATE: Final = """\
apiVersion: v1
kind: Config
clusters:
- name: pilothouse
  cluster:
    server: {server}
    certificate-authority-data: {ca}
users:
- name: kubernetes-admin
  user:
    client-certificate-data: {cert}
    client-key-data: {key}
contexts:
- name: kubernetes-admin@pilothouse
  context:
    cluster: pilothouse
    user: kubernetes-admin
current-context: kubernetes-admin@pilothouse
preferences: {{}}
"""


def write_kubeconfig(path: Path, *, server_url: str, ca: Path, cert: Path, key: Path) -> None:
    """Write a self-contained kubeconfig, readable only by its owner. No-op if the content is unchanged."""
    content = _TEMPLATE.format(server=server_url, ca=_data(ca), cert=_data(cert), key=_data(key)).encode()
    if not path.exists() or path.read_bytes() != content:
        write_atomically(path, content, mode=PRIVATE)


def _data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
