"""Service accounts as a person uses them with kubectl, on a server that runs its controllers."""

from __future__ import annotations

from kubectl import Kubectl


def test_a_pod_can_be_run_right_after_its_namespace_was_created(kubectl: Kubectl, namespace: str) -> None:
    assert kubectl("run", "web", "--image=nginx", "-n", namespace) == "pod/web created\n"
    spec = kubectl.json("get", "pod", "web", "-n", namespace)["spec"]
    assert spec["serviceAccountName"] == "default"
    assert [next(iter(source)) for source in spec["volumes"][0]["projected"]["sources"]] == [
        "serviceAccountToken",
        "configMap",
        "downwardAPI",
    ]


def test_a_pod_of_an_account_that_is_not_there_is_refused(kubectl: Kubectl, namespace: str) -> None:
    pod = f"""{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "web", "namespace": "{namespace}"}},
      "spec": {{"serviceAccountName": "robot", "containers": [{{"name": "c", "image": "i"}}]}}}}"""
    refusal = kubectl.fails("create", "-f", "-", stdin=pod)
    assert f'error looking up service account {namespace}/robot: serviceaccount "robot" not found' in refusal
