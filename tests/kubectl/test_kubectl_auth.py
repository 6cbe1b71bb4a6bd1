"""What a person asks with `kubectl auth`, and sees of policies and flow control."""

from __future__ import annotations

import re

from kubectl import Kubectl

POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: small}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
  validations: [{expression: object.spec.replicas <= 5}]
"""


def test_whoami_shows_the_certificates_name_and_groups(kubectl: Kubectl) -> None:
    shown = kubectl("auth", "whoami")
    assert re.search(r"^Username +kubernetes-admin$", shown, re.MULTILINE)
    assert re.search(r"^Groups +\[system:masters system:authenticated\]$", shown, re.MULTILINE)


def test_can_i_answers_for_resources_and_paths(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "deployments.apps") == "yes\n"
    assert kubectl("auth", "can-i", "get", "pods", "--subresource=log") == "yes\n"
    assert kubectl("auth", "can-i", "get", "/healthz") == "yes\n"


def test_the_servers_own_flow_control_is_listed_in_order_of_precedence(kubectl: Kubectl) -> None:
    lines = kubectl("get", "flowschemas").splitlines()
    assert lines[0].split() == [
        "NAME",
        "PRIORITYLEVEL",
        "MATCHINGPRECEDENCE",
        "DISTINGUISHERMETHOD",
        "AGE",
        "MISSINGPL",
    ]
    assert [line.split()[0] for line in lines[1:3]] == ["exempt", "probes"]
    levels = kubectl("get", "prioritylevelconfigurations")
    assert re.search(r"^workload-low +Limited +100 +128 +6 +50 ", levels, re.MULTILINE)


def test_a_policy_is_applied_and_shown(kubectl: Kubectl) -> None:
    created = kubectl("apply", "-f", "-", stdin=POLICY)
    assert created == "validatingadmissionpolicy.admissionregistration.k8s.io/small created\n"
    assert re.search(r"^small +1 +<unset> ", kubectl("get", "validatingadmissionpolicies"), re.MULTILINE)
    kubectl("delete", "validatingadmissionpolicy", "small")
