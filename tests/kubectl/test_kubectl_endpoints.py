"""Services and the pods behind them as a person sees them with kubectl, on a server that runs its controllers."""

from __future__ import annotations

import json

from kubectl import Kubectl

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {"nodeName": "endpoint-node", "containers": [{"name": "c", "image": "nginx"}]},
}
STATUS = {"podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}], "conditions": [{"type": "Ready", "status": "True"}]}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "endpoint-node"}}


def test_a_pod_that_gets_an_address_is_behind_its_service(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-f", "-", stdin=json.dumps(NODE))
    kubectl("create", "service", "clusterip", "web", "--tcp=80:8080", "-n", namespace)
    kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(POD))
    kubectl("patch", "pod", "web", "-n", namespace, "--subresource=status", "-p", json.dumps({"status": STATUS}))
    kubectl("wait", "--for=jsonpath={.subsets[0].addresses[0].ip}=10.1.2.3", "endpoints/web", "-n", namespace)
    selected = ("endpointslice", "-l", "kubernetes.io/service-name=web", "-n", namespace)
    kubectl("wait", "--for=jsonpath={.endpoints[0].addresses[0]}=10.1.2.3", *selected)
    assert kubectl("get", "endpoints", "web", "-n", namespace, "--no-headers").split()[:2] == ["web", "10.1.2.3:8080"]
    kubectl("delete", "service", "web", "-n", namespace)
    kubectl("wait", "--for=delete", "endpoints/web", "-n", namespace)
    kubectl("wait", "--for=delete", *selected)
