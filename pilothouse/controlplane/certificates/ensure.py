"""All certificates and keys of a server, made where they are missing, renewed where they are old.

    ensure_certificates(data_dir, bind_address="0.0.0.0", hostnames=["api.example"], service_ip="10.0.0.1")

What was issued is recorded beside it. As long as the files are those of the record, are not due for renewal and hold
for the wanted names, a restart reads nothing but hashes: the library that makes certificates is not loaded.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from pathlib import Path

from pilothouse.controlplane.certificates.names import ServingNames, serving_names
from pilothouse.controlplane.certificates.paths import CertificatePaths
from pilothouse.machinery.whole_files import PUBLIC, make_directory, write_atomically

FRONT_PROXY_CLIENT = "front-proxy-client"
_RECORD = "issued.json"


def ensure_certificates(
    data_dir: Path, *, bind_address: str, hostnames: Iterable[str] = (), service_ip: str = "10.0.0.1"
) -> CertificatePaths:
    """Raises CertificateError where the files that are there contradict each other."""
    paths = CertificatePaths.under(data_dir)
    wanted = serving_names(bind_address=bind_address, hostnames=hostnames, service_ip=service_ip)
    if not _is_current(paths, wanted):
        make_directory(paths.directory)
        _make(paths, wanted)
    return paths


def _make(paths: CertificatePaths, wanted: ServingNames) -> None:
    from pilothouse.controlplane.certificates.issue import RENEW_BEFORE, Profile, names_of
    from pilothouse.controlplane.certificates.keep import keep_certificate, keep_shared_keys

    ca, proxy_ca = keep_shared_keys(paths.directory)
    server = Profile("kube-apiserver", names=wanted)
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
    _record(paths, names_of(serving), renew_after.timestamp())


def _is_current(paths: CertificatePaths, wanted: ServingNames) -> bool:
    try:
        record = json.loads((paths.directory / _RECORD).read_bytes())
        noted = ServingNames(frozenset(record["dns"]), frozenset(record["ips"]))
        fresh = time.time() < record["renewAfter"]
        return fresh and noted.covers(wanted) and record["files"] == _digests(paths)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _record(paths: CertificatePaths, names: ServingNames, renew_after: float) -> None:
    record = {
        "renewAfter": renew_after,
        "dns": sorted(names.dns),
        "ips": sorted(names.ips),
        "files": _digests(paths),
    }
    write_atomically(paths.directory / _RECORD, json.dumps(record, indent=2).encode(), mode=PUBLIC)


def _digests(paths: CertificatePaths) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths.files if path.exists()}
