"""All certificates and keys of a server, made where they are missing, renewed where they are old.

    ensure_certificates(data_dir, bind_address="0.0.0.0", hostnames=["api.example"], service_ip="10.0.0.1")

A restart finds everything in place and reads nothing but hashes: the library that makes certificates is not loaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pilothouse.controlplane.certificates.names import ServingNames, serving_names
from pilothouse.controlplane.certificates.paths import CertificatePaths
from pilothouse.controlplane.certificates.record import note, still_good

FRONT_PROXY_CLIENT = "front-proxy-client"


def ensure_certificates(
    data_dir: Path, *, bind_address: str, hostnames: Iterable[str] = (), service_ip: str = "10.0.0.1"
) -> CertificatePaths:
    """Raises CertificateError where the files that are there contradict each other."""
    paths = CertificatePaths.under(data_dir)
    wanted = serving_names(bind_address=bind_address, hostnames=hostnames, service_ip=service_ip)
    if not still_good(paths, wanted):
        paths.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make(paths, wanted)
    return paths


def _make(paths: CertificatePaths, wanted: ServingNames) -> None:
    from pilothouse.controlplane.certificates.issue import RENEW_BEFORE, Profile, names_of
    from pilothouse.controlplane.certificates.keep import keep_authority, keep_certificate, keep_signing_key

    ca = keep_authority("kubernetes", paths.ca_cert, paths.ca_key)
    proxy_ca = keep_authority("front-proxy-ca", paths.front_proxy_ca_cert, paths.front_proxy_ca_key)
    keep_signing_key(paths.service_account_key, paths.service_account_public_key)

    server = Profile("kube-apiserver", names=wanted)
    admin = Profile("kubernetes-admin", organizations=("system:masters",))
    proxy = Profile(FRONT_PROXY_CLIENT)
    serving = keep_certificate(server, ca, paths.serving_cert, paths.serving_key)
    issued = [
        serving,
        keep_certificate(admin, ca, paths.admin_cert, paths.admin_key),
        keep_certificate(proxy, proxy_ca, paths.front_proxy_client_cert, paths.front_proxy_client_key),
    ]
    renew_after = min(certificate.not_valid_after_utc - RENEW_BEFORE for certificate in issued)
    note(paths, names_of(serving), renew_after.timestamp())
