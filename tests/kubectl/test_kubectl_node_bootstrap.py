"""A kubelet that joins: its certificate is approved once it may have one, and then logs in as a node."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from kubectl import BINARY, MISSING, Kubectl
from patience import KUBECTL_TIMEOUT
from serving_process import ServeProcess

CSR = """
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: node}
spec:
  signerName: kubernetes.io/kube-apiserver-client-kubelet
  usages: [digital signature, client auth]
  request: REQUEST
"""
CLUSTER_INFO = "apiVersion: v1\nkind: Config\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    flags = ("--authorization-mode=RBAC", "--controllers=*,bootstrapsigner,tokencleaner")
    process = ServeProcess(tmp_path_factory.mktemp("bootstrap-server") / "data", *flags)
    yield process
    process.close()


@pytest.fixture
def kubectl(server: ServeProcess, tmp_path: Path) -> Kubectl:
    if BINARY is None:
        pytest.skip(MISSING)
    return Kubectl(server.data_dir / "admin.kubeconfig", tmp_path)


def request() -> str:
    names = {NameOID.ORGANIZATION_NAME: "system:nodes", NameOID.COMMON_NAME: "system:node:deck"}
    subject = x509.Name([x509.NameAttribute(oid, value) for oid, value in names.items()])
    made = x509.CertificateSigningRequestBuilder().subject_name(subject)
    signed = made.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(signed.public_bytes(Encoding.PEM)).decode()


def test_a_kubelet_is_approved_once_its_group_may_have_certificates(kubectl: Kubectl) -> None:
    group = "system:bootstrappers"
    kubectl("create", "clusterrolebinding", "join", "--clusterrole=system:node-bootstrapper", f"--group={group}")
    joining = ("--as=joining", f"--as-group={group}")
    kubectl("create", "-f", "-", *joining, stdin=CSR.replace("REQUEST", request()))
    assert kubectl("get", "csr", "node").splitlines()[1].split()[-1] == "Pending"
    approving = "system:certificates.k8s.io:certificatesigningrequests:nodeclient"
    kubectl("create", "clusterrolebinding", "approve", f"--clusterrole={approving}", f"--group={group}")
    kubectl("wait", "csr/node", "--for=jsonpath={.status.certificate}", KUBECTL_TIMEOUT)
    found = kubectl.json("get", "csr", "node")["status"]
    assert found["conditions"][0]["reason"] == "AutoApproved"
    certificate = x509.load_pem_x509_certificate(base64.b64decode(found["certificate"]))
    assert certificate.subject.rfc4514_string() == "CN=system:node:deck,O=system:nodes"


def test_cluster_info_is_signed_with_a_bootstrap_token(kubectl: Kubectl) -> None:
    literals = ("token-id=abcdef", "token-secret=0123456789abcdef", "usage-bootstrap-signing=true")
    kubectl(
        "create",
        "secret",
        "generic",
        "bootstrap-token-abcdef",
        "--type=bootstrap.kubernetes.io/token",
        "-n=kube-system",
        *(f"--from-literal={each}" for each in literals),
    )
    kubectl("create", "configmap", "cluster-info", f"--from-literal=kubeconfig={CLUSTER_INFO}", "-n=kube-public")
    signed = "--for=jsonpath={.data.jws-kubeconfig-abcdef}"
    kubectl("wait", "cm/cluster-info", signed, KUBECTL_TIMEOUT, "-n=kube-public")
