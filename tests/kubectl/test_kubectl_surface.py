"""What kubectl finds out about the API: resources, versions and explanations."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from kubectl import Kubectl
from recorded import recorded

FACTS = recorded("facts") / "discovery.json"

ELSEWHERE = {"apiextensions.k8s.io", "apiregistration.k8s.io"}
"""Groups of the other two servers of the chain."""


def _recorded() -> dict[tuple[str, str], dict[str, Any]]:
    """The resources by group and name, in the preferred version of their group."""
    found = {}
    for root in json.loads(FACTS.read_text()).values():
        for group in root["items"]:
            name = group["metadata"].get("name", "")
            for version in reversed(group["versions"]):
                for resource in version["resources"]:
                    api_version = f"{name}/{version['version']}" if name else version["version"]
                    found[name, resource["resource"]] = resource | {"apiVersion": api_version}
    return found


def test_api_resources_lists_what_kube_apiserver_has(kubectl: Kubectl) -> None:
    listed = {line.split()[0]: line for line in kubectl("api-resources", "-o", "wide", "--no-headers").splitlines()}
    for (group, name), resource in _recorded().items():
        if group in ELSEWHERE or "events" in name:
            continue
        line = listed[name]
        assert re.search(rf" {re.escape(resource['apiVersion'])} +", line), name
        assert re.search(
            rf" {str(resource['scope'] == 'Namespaced').lower()} +{resource['responseKind']['kind']} ", line
        )
        assert ",".join(sorted(resource["verbs"])) in line.replace(" ", ""), name
        for short in resource.get("shortNames", ()):
            assert re.search(rf"[ ,]{short}[ ,]", line), name


def test_api_versions_lists_every_version(kubectl: Kubectl) -> None:
    expected = {each["apiVersion"] for (group, _), each in _recorded().items() if group not in ELSEWHERE}
    found = set(kubectl("api-versions").split())
    assert expected <= found
    assert "autoscaling/v1" in found


def test_short_names_and_categories_find_their_resources(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "deployment", "web", "--image=nginx", "-n", namespace)
    for name in ("deploy", "deployment", "deployments.apps", "deployments.v1.apps"):
        assert kubectl("get", name, "-o", "name", "-n", namespace) == "deployment.apps/web\n"
    assert "deployment.apps/web" in kubectl("get", "all", "-o", "name", "-n", namespace).split()


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("pods.spec.containers.livenessProbe.httpGet", "FIELD: httpGet <HTTPGetAction>"),
        ("deploy.spec.strategy.rollingUpdate.maxSurge", "FIELD: maxSurge <IntOrString>"),
        ("svc.spec.clusterIP", "FIELD: clusterIP <string>"),
        ("hpa.spec.metrics", "FIELD: metrics <[]MetricSpec>"),
        ("ing.spec.rules.http.paths.pathType", "FIELD: pathType <string>"),
        ("cronjobs.spec.jobTemplate.spec.parallelism", "FIELD: parallelism <integer>"),
    ],
)
def test_explain_knows_the_fields_of_every_kind(kubectl: Kubectl, field: str, shown: str) -> None:
    assert shown in kubectl("explain", field)


def test_explain_takes_another_version_than_the_preferred_one(kubectl: Kubectl) -> None:
    shown = kubectl("explain", "hpa.spec", "--api-version=autoscaling/v1")
    assert "targetCPUUtilizationPercentage\t<integer>" in shown
