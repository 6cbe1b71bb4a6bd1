"""The certificates with which this server and its simulated kubelets know each other.

They have a CA of their own: the server's may be somebody else's, who does not give its key away.
"""

from __future__ import annotations

from pathlib import Path

from pilothouse.controlplane.certificates.names import ServingNames
from pilothouse.machinery.whole_files import make_directory
from pilothouse.nodes.simulated_kubelet import CLIENT_NAME, HOST, SERVER_NAME, SimulatedKubelet


def simulated_kubelet(data_dir: Path) -> SimulatedKubelet:
    """Return where the files are, whether they are there or not."""
    return SimulatedKubelet(data_dir / "simulated-kubelets")


def ensure_kubelet_certificates(data_dir: Path) -> SimulatedKubelet:
    """Make the certificates that are missing or old. Raises CertificateError."""
    from pilothouse.controlplane.certificates.issue import Profile
    from pilothouse.controlplane.certificates.keep import keep_authority, keep_certificate

    files = simulated_kubelet(data_dir)
    make_directory(files.directory)
    authority = keep_authority("simulated-kubelets", files.ca_cert, files.ca_key)
    names = ServingNames(frozenset({SERVER_NAME}), frozenset({HOST}))
    keep_certificate(Profile("simulated-kubelet", names=names), authority, files.serving_cert, files.serving_key)
    keep_certificate(Profile(CLIENT_NAME), authority, files.client_cert, files.client_key)
    return files
