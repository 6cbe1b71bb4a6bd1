"""Quotas as a person sees them with kubectl, on a server that runs its controllers."""

from __future__ import annotations

from kubectl import Kubectl
from patience import KUBECTL_TIMEOUT


def test_a_quota_is_in_force_at_once_and_gives_back_what_is_deleted(kubectl: Kubectl, namespace: str) -> None:
    def until_used(pods: int) -> None:
        kubectl("wait", f"--for=jsonpath={{.status.used.pods}}={pods}", "quota/q", "-n", namespace, KUBECTL_TIMEOUT)

    kubectl("create", "quota", "q", "--hard=pods=1", "-n", namespace)
    until_used(0)
    kubectl("run", "a", "--image=nginx", "-n", namespace)
    until_used(1)
    refusal = kubectl.fails("run", "b", "--image=nginx", "-n", namespace)
    assert "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1" in refusal
    kubectl("delete", "pod", "a", "-n", namespace, "--now")
    until_used(0)
    kubectl("run", "b", "--image=nginx", "-n", namespace)
