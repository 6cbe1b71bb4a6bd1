"""What the controllers of a whole server do for a person: claims go, budgets are counted."""

from __future__ import annotations

from kubectl import Kubectl
from patience import KUBECTL_TIMEOUT

CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


def test_a_claim_that_nobody_uses_can_be_deleted(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-f", "-", "-n", namespace, stdin=CLAIM)
    assert "deleted" in kubectl("delete", "pvc", "data", KUBECTL_TIMEOUT, "-n", namespace)


def test_a_budget_says_how_many_pods_may_go(kubectl: Kubectl, namespace: str) -> None:
    kubectl("run", "web", "--image=nginx", "--labels=app=web", "-n", namespace)
    kubectl("create", "pdb", "web", "--selector=app=web", "--min-available=0", "-n", namespace)
    ready = '{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}'
    kubectl("patch", "pod", "web", "--subresource=status", "-p", ready, "-n", namespace)
    allowed = "--for=jsonpath={.status.disruptionsAllowed}=1"
    kubectl("wait", "pdb/web", allowed, KUBECTL_TIMEOUT, "-n", namespace)
    assert kubectl("get", "pdb", "web", "-n", namespace).splitlines()[1].split()[:4] == ["web", "0", "N/A", "1"]
