"""Namespaces from their creation to their end, with stock kubectl, as on a whole cluster."""

from __future__ import annotations

import json

from kubectl import Kubectl
from patience import KUBECTL_TIMEOUT

CHART = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: web}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}
subjects: [{kind: ServiceAccount, name: web}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {a: b}
---
apiVersion: v1
kind: Secret
metadata: {name: web}
stringData: {a: b}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {serviceAccountName: web, containers: [{name: web, image: "web:1"}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
"""

DEAD_API = """
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.dead.example.com}
spec:
  group: dead.example.com
  version: v1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {namespace: default, name: nobody}
"""


def test_a_namespace_takes_all_of_a_chart_with_it(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "release")
    kubectl("apply", "-n", "release", "-f", "-", stdin=CHART)
    assert "deployment.apps/web" in kubectl("get", "all", "-n", "release", "-o", "name")
    kubectl("delete", "namespace", "release", "--wait", KUBECTL_TIMEOUT)
    assert "NotFound" in kubectl.fails("get", "namespace", "release")
    kubectl("create", "namespace", "release")
    left = kubectl("get", "cm,secret,svc,deploy,ing,pdb,role,rolebinding", "-n", "release", "-o", "name").split()
    assert [name for name in left if "web" in name] == []
    kubectl("delete", "namespace", "release", "--wait=false")


def test_a_dead_api_is_told_of_and_only_what_it_might_have_keeps_the_namespace(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "doomed")
    kubectl("apply", "-n", "doomed", "-f", "-", stdin=CHART)
    kubectl("apply", "-f", "-", stdin=DEAD_API)
    kubectl("wait", "--for=condition=Available=false", "apiservice/v1.dead.example.com", KUBECTL_TIMEOUT)
    try:
        kubectl("delete", "namespace", "doomed", "--wait=false")
        kubectl("wait", "--for=condition=NamespaceDeletionDiscoveryFailure", "namespace/doomed", KUBECTL_TIMEOUT)
        conditions = json.loads(kubectl("get", "namespace", "doomed", "-o", "jsonpath={.status.conditions}"))
        failure = next(each for each in conditions if each["type"] == "NamespaceDeletionDiscoveryFailure")
        assert failure["message"] == (
            "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: "
            "dead.example.com/v1: stale GroupVersion discovery: dead.example.com/v1"
        )
        assert kubectl("get", "configmaps,deployments", "-n", "doomed", "-o", "name") == ""
    finally:
        kubectl("delete", "apiservice", "v1.dead.example.com")
    kubectl("wait", "--for=delete", "namespace/doomed", KUBECTL_TIMEOUT)


def test_a_deployment_takes_what_it_owns_with_it_unless_that_is_orphaned(kubectl: Kubectl, namespace: str) -> None:
    for name in ("one", "two"):
        kubectl("create", "deployment", name, "--image=i", "-n", namespace)
        uid = kubectl("get", "deployment", name, "-n", namespace, "-o", "jsonpath={.metadata.uid}")
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": uid}
        owned = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [owner]}}
        kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(owned))
    kubectl("delete", "deployment", "one", "-n", namespace, "--cascade=orphan")
    kubectl("delete", "deployment", "two", "-n", namespace, "--cascade=foreground", KUBECTL_TIMEOUT)
    assert kubectl("get", "configmap", "-n", namespace, "-o", "name").split().count("configmap/two") == 0
    assert kubectl("get", "configmap", "one", "-n", namespace, "-o", "jsonpath={.metadata.ownerReferences}") == ""
