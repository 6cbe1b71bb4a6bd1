"""A person asks for a certificate, is approved with kubectl, and logs in with what they got."""

from __future__ import annotations

import base64
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from kubectl import Kubectl
from patience import KUBECTL_TIMEOUT

CSR = """
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: alice}
spec: {signerName: kubernetes.io/kube-apiserver-client, usages: [client auth], request: REQUEST}
"""


def test_a_certificate_that_was_approved_logs_in(kubectl: Kubectl, tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = [
        x509.NameAttribute(NameOID.COMMON_NAME, "alice"),
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "captains"),
    ]
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject)).sign(key, hashes.SHA256())
    encoded = base64.b64encode(request.public_bytes(Encoding.PEM)).decode()
    kubectl("create", "-f", "-", stdin=CSR.replace("REQUEST", encoded))
    said = kubectl("certificate", "approve", "alice")
    assert said == "certificatesigningrequest.certificates.k8s.io/alice approved\n"
    kubectl("wait", "csr/alice", "--for=jsonpath={.status.certificate}", KUBECTL_TIMEOUT)
    assert kubectl("get", "csr", "alice").splitlines()[1].split()[-1] == "Approved,Issued"
    certificate = kubectl.json("get", "csr", "alice")["status"]["certificate"]
    (tmp_path / "tls.crt").write_bytes(base64.b64decode(certificate))
    (tmp_path / "tls.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    server = kubectl.json("config", "view", "--raw")["clusters"][0]["cluster"]["server"]
    shown = kubectl(
        "auth",
        "whoami",
        f"--server={server}",
        "--insecure-skip-tls-verify",
        f"--client-certificate={tmp_path / 'tls.crt'}",
        f"--client-key={tmp_path / 'tls.key'}",
        "--kubeconfig=/dev/null",
        "-o",
        "jsonpath={.status.userInfo.username} {.status.userInfo.groups}",
    )
    assert shown == 'alice ["captains","system:authenticated"]'
