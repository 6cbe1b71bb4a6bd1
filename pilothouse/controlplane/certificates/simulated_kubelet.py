"""The certificates with which this server and its simulated kubelets know each other."""

from __future__ import annotations

from pathlib import Path

from pilothouse.apiserver.simulated_kubelet import CLIENT_NAME, HOST, SERVER_NAME, SimulatedKubelet
from pilothouse.controlplane.certificates.names import ServingNames
from pilothouse.controlplane.certificates.paths import CertificatePaths


def simulated_kubelet(data_dir: Path) -> SimulatedKubelet:
    """Return where the files are, whether they are there or not."""
    paths = CertificatePaths.under(data_dir)
    return SimulatedKubelet(paths.directory, paths.ca_cert)


def ensure_kubelet_certificates(data_dir: Path) -> SimulatedKubelet:
    """Make the certificates that are missing or old. Raises CertificateError."""
    from pilothouse.controlplane.certificates.issue import Profile
    from pilothouse.controlplane.certificates.keep import keep_authority, keep_certificate

    paths, files = CertificatePaths.under(data_dir), simulated_kubelet(data_dir)
    authority = keep_authority("kubernetes", paths.ca_cert, paths.ca_key)
    names = ServingNames(frozenset({SERVER_NAME}), frozenset({HOST}))
    keep_certificate(Profile("simulated-kubelet", names=names), authority, files.serving_cert, files.serving_key)
    keep_certificate(Profile(CLIENT_NAME), authority, files.client_cert, files.client_key)
    return files
