"""Tokens of service accounts, asked for and used with kubectl."""

from __future__ import annotations

import base64
import re

from kubectl import Kubectl
from patience import KUBECTL_TIMEOUT

TOKEN_SECRET = """
apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata: {name: token, annotations: {kubernetes.io/service-account.name: robot}}
"""


def _with_token(kubectl: Kubectl, token: str) -> tuple[str, ...]:
    """The flags of a command that shows a token and no certificate."""
    cluster = kubectl.json("config", "view", "--raw")["clusters"][0]["cluster"]
    return (
        f"--server={cluster['server']}",
        "--insecure-skip-tls-verify",
        f"--token={token}",
        "--kubeconfig=/dev/null",
    )


def test_a_token_is_created_and_says_who_one_is(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "robot")
    token = kubectl("create", "token", "robot", "--duration=10m").strip()
    shown = kubectl("auth", "whoami", *_with_token(kubectl, token))
    assert re.search(r"^Username +system:serviceaccount:default:robot$", shown, re.MULTILINE)
    assert re.search(r"^Extra: authentication.kubernetes.io/credential-id +\[JTI=", shown, re.MULTILINE)


def test_a_token_bound_to_a_secret_dies_with_it(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "binder")
    kubectl("create", "secret", "generic", "bond")
    token = kubectl("create", "token", "binder", "--bound-object-kind=Secret", "--bound-object-name=bond").strip()
    kubectl("auth", "whoami", *_with_token(kubectl, token))
    kubectl("delete", "secret", "bond")
    assert "Unauthorized" in kubectl.fails("auth", "whoami", *_with_token(kubectl, token))


def test_a_secret_that_asks_for_a_token_gets_one_that_says_who_one_is(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "serviceaccount", "robot", "-n", namespace)
    kubectl("create", "-f", "-", "-n", namespace, stdin=TOKEN_SECRET)
    kubectl("wait", "secret/token", "--for=jsonpath={.data.token}", KUBECTL_TIMEOUT, "-n", namespace)
    data = kubectl.json("get", "secret", "token", "-n", namespace)["data"]
    token = base64.b64decode(data["token"]).decode()
    shown = kubectl("auth", "whoami", *_with_token(kubectl, token))
    assert re.search(rf"^Username +system:serviceaccount:{namespace}:robot$", shown, re.MULTILINE)
    published = kubectl.json("get", "cm", "kube-root-ca.crt", "-n", namespace)["data"]["ca.crt"]
    assert base64.b64decode(data["ca.crt"]).decode() == published


def test_a_token_for_too_short_a_life_is_refused(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "hasty")
    failed = kubectl.fails("create", "token", "hasty", "--duration=1m")
    assert "may not specify a duration less than 10 minutes" in failed
