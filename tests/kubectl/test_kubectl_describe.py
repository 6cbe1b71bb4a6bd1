"""What `kubectl describe` says about real objects."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from kubectl import Kubectl
from patience import KUBECTL_TIMEOUT
from printed import described, table

NODE = """
apiVersion: v1
kind: Node
metadata: {name: NAME, labels: {node-role.kubernetes.io/worker: ""}}
spec: {podCIDR: 10.244.0.0/24}
"""
NODE_STATUS = """{"status": {
  "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}, "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
  "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting",
    "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
  "addresses": [{"type": "InternalIP", "address": "10.1.2.3"}],
  "nodeInfo": {"kubeletVersion": "v1.36.0", "osImage": "Linux", "kernelVersion": "6.1", "machineID": "m",
    "containerRuntimeVersion": "containerd://2.0", "systemUUID": "s", "bootID": "b", "kubeProxyVersion": "",
    "operatingSystem": "linux", "architecture": "amd64"}}}"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  nodeName: NAME
  containers:
  - name: main
    image: nginx:1.27
    ports: [{containerPort: 80}]
    env: [{name: A, value: "1"}]
    resources: {requests: {cpu: 100m, memory: 64Mi}}
    livenessProbe: {httpGet: {path: /, port: 80}}
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, emptyDir: {}}]
"""
POD_STATUS = """{"status": {
  "phase": "Running", "podIP": "10.244.0.5", "podIPs": [{"ip": "10.244.0.5"}],
  "conditions": [{"type": "Ready", "status": "True"}],
  "containerStatuses": [{"name": "main", "image": "nginx:1.27", "imageID": "", "ready": true, "restartCount": 1,
    "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, "lastState": {}}]}}"""

DESCRIBED_POD = """\
Name:             web
Namespace:        NAMESPACE
Priority:         0
Service Account:  default
Node:             NAME/
Labels:           app=web
Annotations:      <none>
Status:           Running
IP:               10.244.0.5
IPs:
  IP:  10.244.0.5
Containers:
  main:
    Container ID:
    Image:          nginx:1.27
    Image ID:
    Port:           80/TCP
    Host Port:      0/TCP
    State:          Running
      Started:      TIME
    Ready:          True
    Restart Count:  1
    Requests:
      cpu:     100m
      memory:  64Mi
    Liveness:  http-get http://:80/ delay=0s timeout=1s period=10s #success=1 #failure=3
    Environment:
      A:  1
    Mounts:
      /data from data (rw)
      /var/run/secrets/kubernetes.io/serviceaccount from kube-api-access-RANDOM (ro)
Conditions:
  Type    Status
  Ready   True
Volumes:
  data:
    Type:       EmptyDir (a temporary directory that shares a pod's lifetime)
    Medium:
    SizeLimit:  <unset>
  kube-api-access-RANDOM:
    Type:                    Projected (a volume that contains injected data from multiple sources)
    TokenExpirationSeconds:  3607
    ConfigMapName:           kube-root-ca.crt
    ConfigMapOptional:       <nil>
    DownwardAPI:             true
QoS Class:                   Burstable
Node-Selectors:              <none>
Tolerations:                 node.kubernetes.io/not-ready:NoExecute op=Exists for 300s
                             node.kubernetes.io/unreachable:NoExecute op=Exists for 300s
Events:                      <none>"""

DESCRIBED_DEPLOYMENT = """\
Name:                   web
Namespace:              NAMESPACE
CreationTimestamp:      TIME
Labels:                 app=web
Annotations:            deployment.kubernetes.io/revision: 1
Selector:               app=web
Replicas:               3 desired | 3 updated | 3 total | 0 available | 3 unavailable
StrategyType:           RollingUpdate
MinReadySeconds:        0
RollingUpdateStrategy:  25% max unavailable, 25% max surge
Pod Template:
  Labels:  app=web
  Containers:
   nginx:
    Image:         nginx:1.27
    Port:          <none>
    Host Port:     <none>
    Environment:   <none>
    Mounts:        <none>
  Volumes:         <none>
  Node-Selectors:  <none>
  Tolerations:     <none>
Conditions:
  Type           Status  Reason
  ----           ------  ------
  Available      False   MinimumReplicasUnavailable
  Progressing    True    ReplicaSetUpdated
OldReplicaSets:  <none>
NewReplicaSet:   web-HASH (3/3 replicas created)
Events:
  Type    Reason             Age   From                   Message
  ----    ------             ----  ----                   -------
  Normal  ScalingReplicaSet  AGE  deployment-controller  Scaled up replica set web-HASH from 0 to 3"""

DESCRIBED_SERVICE = """\
Name:                     web
Namespace:                NAMESPACE
Labels:                   app=web
Annotations:              <none>
Selector:                 app=web
Type:                     ClusterIP
IP Family Policy:         SingleStack
IP Families:              IPv4
IP:                       ADDRESS
IPs:                      ADDRESS
Port:                     80-8080  80/TCP
TargetPort:               8080/TCP
Endpoints:
Session Affinity:         None
Internal Traffic Policy:  Cluster
Events:                   <none>"""


@pytest.fixture
def node(kubectl: Kubectl, namespace: str) -> Iterator[str]:
    """It is gone afterwards, so that no pods are put on a node that has no kubelet to end them."""
    name = f"node-of-{namespace}"
    kubectl("apply", "-f", "-", stdin=NODE.replace("NAME", name))
    kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", NODE_STATUS)
    kubectl("create", "-n", namespace, "-f", "-", stdin=POD.replace("NAME", name))
    kubectl("patch", "pod", "web", "-n", namespace, "--subresource=status", "--type=merge", "-p", POD_STATUS)
    yield name
    kubectl("delete", "node", name)


def test_a_pod(kubectl: Kubectl, namespace: str, node: str) -> None:
    shown = described(kubectl("describe", "pod", "web", "-n", namespace))
    shown = re.sub(r"kube-api-access-\w{5}", "kube-api-access-RANDOM", shown)
    assert shown == DESCRIBED_POD.replace("NAMESPACE", namespace).replace("NAME", node)
    row = table(kubectl("get", "pod", "-o", "wide", "-n", namespace))[1]
    assert row == ["web", "1/1", "Running", "1", "AGE", "10.244.0.5", node, "<none>", "<none>"]


def test_a_node_with_its_pods_and_what_they_ask_for(kubectl: Kubectl, namespace: str, node: str) -> None:
    shown = described(kubectl("describe", "node", node))
    assert re.search(r"^Roles: +worker$", shown, re.MULTILINE)
    assert re.search(r"^  Ready   True    TIME   TIME   KubeletReady   kubelet is posting$", shown, re.MULTILINE)
    assert re.search(rf"^  {namespace} +web +100m \(2%\) +0 \(0%\) +64Mi \(0%\) +0 \(0%\)", shown, re.MULTILINE)
    assert re.search(r"^  cpu +100m \(2%\) +0 \(0%\)$", shown, re.MULTILINE)
    assert table(kubectl("get", "node", node))[1] == [node, "Ready", "worker", "AGE", "v1.36.0"]


def test_a_cordoned_node_takes_no_pods(kubectl: Kubectl, node: str) -> None:
    assert kubectl("cordon", node) == f"node/{node} cordoned\n"
    assert table(kubectl("get", "node", node))[1][1] == "Ready,SchedulingDisabled"
    assert re.search(r"^Unschedulable: +true$", kubectl("describe", "node", node), re.MULTILINE)
    assert kubectl("uncordon", node) == f"node/{node} uncordoned\n"


def test_a_deployment(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "deployment", "web", "--image=nginx:1.27", "--replicas=3", "-n", namespace)
    kubectl("wait", "deploy/web", "--for=jsonpath={.status.unavailableReplicas}=3", KUBECTL_TIMEOUT, "-n", namespace)
    kubectl("wait", "event", "--field-selector=reason=ScalingReplicaSet", "--for=create", "-n", namespace)
    shown = re.sub(r"web-\w+", "web-HASH", described(kubectl("describe", "deploy", "web", "-n", namespace)))
    shown = re.sub(r"(ScalingReplicaSet) +\d+s +", r"\1  AGE  ", shown)
    assert shown == DESCRIBED_DEPLOYMENT.replace("NAMESPACE", namespace)


def test_a_service(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "service", "clusterip", "web", "--tcp=80:8080", "-n", namespace)
    selected = ("endpointslice", "-l", "kubernetes.io/service-name=web", "-n", namespace)
    kubectl("wait", "--for=create", KUBECTL_TIMEOUT, *selected)
    address = kubectl.json("get", "svc", "web", "-n", namespace)["spec"]["clusterIP"]
    shown = described(kubectl("describe", "svc", "web", "-n", namespace))
    assert shown == DESCRIBED_SERVICE.replace("NAMESPACE", namespace).replace("ADDRESS", address)


def test_the_kubernetes_service_leads_to_this_server(kubectl: Kubectl) -> None:
    row = table(kubectl("get", "svc", "kubernetes", "-n", "default"))[1]
    assert row == ["kubernetes", "ClusterIP", "10.0.0.1", "<none>", "443/TCP", "AGE"]
    port = kubectl.json("get", "svc", "kubernetes", "-n", "default")["spec"]["ports"][0]["targetPort"]
    shown = described(kubectl("describe", "svc", "kubernetes", "-n", "default"))
    assert re.search(rf"^Endpoints: +[0-9a-f.:\[\]]+:{port}$", shown, re.MULTILINE)


def test_other_kinds_are_described_without_complaint(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods,deployments.apps", "-n", namespace)
    kubectl("create", "cronjob", "often", "--image=busybox", "--schedule=@hourly", "-n", namespace)
    role = described(kubectl("describe", "role", "reader", "-n", namespace))
    assert role.splitlines()[-4:] == [
        "  Resources         Non-Resource URLs  Resource Names  Verbs",
        "  ---------         -----------------  --------------  -----",
        "  pods              []                 []              [get list]",
        "  deployments.apps  []                 []              [get list]",
    ]
    assert re.search(r"^Schedule: +@hourly$", kubectl("describe", "cj", "often", "-n", namespace), re.MULTILINE)
    assert re.search(r"^Value: +2000001000$", kubectl("describe", "pc", "system-node-critical"), re.MULTILINE)
