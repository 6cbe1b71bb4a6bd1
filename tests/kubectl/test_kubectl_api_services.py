"""What a person sees of APIServices with kubectl: of built-in groups, of custom resources, and of other servers."""

from __future__ import annotations

import re

from kubectl import Kubectl
from patience import KUBECTL_TIMEOUT

MANAGED = "kube-aggregator.kubernetes.io/automanaged"

CUPS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cups.kitchen.example.com}
spec:
  group: kitchen.example.com
  scope: Namespaced
  names: {plural: cups, kind: Cup}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
"""

METRICS = """
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.custom.metrics.example.com}
spec:
  group: custom.metrics.example.com
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: kube-hpa, namespace: kube-system}
"""


def test_the_listing_shows_who_serves_each_version_and_how_it_is_managed(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=CUPS)
    kubectl("create", "-f", "-", stdin=METRICS)
    kubectl("wait", "--for=create", KUBECTL_TIMEOUT, "apiservice/v1.kitchen.example.com")
    kubectl("wait", "--for=condition=Available", KUBECTL_TIMEOUT, "apiservice/v1.kitchen.example.com")
    lines = kubectl("get", "apiservices", "--show-labels").splitlines()
    assert lines[0].split() == ["NAME", "SERVICE", "AVAILABLE", "AGE", "LABELS"]
    shown = {line.split()[0]: line for line in lines[1:]}
    assert re.fullmatch(rf"v1\. +Local +True +\S+ +{MANAGED}=onstart", shown["v1."])
    assert re.fullmatch(rf"v2\.autoscaling +Local +True +\S+ +{MANAGED}=onstart", shown["v2.autoscaling"])
    assert re.fullmatch(rf"v1\.kitchen\S+ +Local +True +\S+ +{MANAGED}=true", shown["v1.kitchen.example.com"])
    remote = shown["v1beta1.custom.metrics.example.com"]
    assert re.fullmatch(r"v1beta1\.custom\S+ +kube-system/kube-hpa +(Unknown|False \(\w+\)) +\d+s +<none>", remote)
    kubectl("delete", "apiservice", "v1beta1.custom.metrics.example.com")
    kubectl("delete", "crd", "cups.kitchen.example.com")
    kubectl("wait", "--for=delete", KUBECTL_TIMEOUT, "apiservice/v1.kitchen.example.com")
