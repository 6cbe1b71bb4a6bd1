"""`pilothouse validate`: what it finds, on which lines, and how it says so."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import orjson
import pytest

from pilothouse.apiserver.authn.user import User
from pilothouse.cli.main import main
from pilothouse.cli.offline.documents import CheckReport, Severity
from pilothouse.cli.offline.matrix import render_matrix
from pilothouse.cli.offline.output import render
from pilothouse.cli.offline.validating import ValidationRequest, validate

_FILES = {
    "well.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {generateName: settings-}
---
# nothing but a comment
---
apiVersion: v1
kind: Namespace
metadata: {name: default}
""",
    "broken/deployment.yaml": """apiVersion: v1
kind: ConfigMap
metadata: {name: first}
--- # the second
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  replicaz: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      priorityClassName: urgent
      containers:
      - name: web
        image: nginx
        prots: []
""",
    "broken/pod.yml": """apiVersion: v1
kind: Pod
metadata: {name: one}
spec:
  containers:
  - name: Upper
    image: ""
---
apiVersion: v1
kind: Pod
metadata: {name: two}
spec:
  serviceAccountName: builder
  containers: [{name: a, image: b}]
---
apiVersion: v1
kind: Pod
metadata:
  name: three
  name: three
---
apiVersion: v1
kind: Service
metadata: {name: four}
spec:
  ports: "80"
""",
    "things/a-thing.yaml": """apiVersion: example.com/v1
kind: Thing
metadata: {name: large}
spec:
  size: 11
---
apiVersion: example.com/v1
kind: Unknown
metadata: {name: what}
---
apiVersion: extensions/v1beta1
kind: Ingress
metadata: {name: old}
""",
    "things/definition.yaml": """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things, kind: Thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {size: {type: integer}}
            x-kubernetes-validations:
            - {rule: self.size < 10, message: too large, fieldPath: .size}
""",
    "list.json": """{"apiVersion": "v1", "kind": "ConfigMapList", "items": [
  {"metadata": {"name": "a"}},
  {"metadata": {"name": "b"},
   "dta": {}}
]}
""",
    "quota.yaml": """apiVersion: v1
kind: Pod
metadata: {name: one, namespace: small}
spec: {containers: [{name: a, image: b}]}
---
apiVersion: v1
kind: Pod
metadata: {name: two, namespace: small}
spec: {containers: [{name: a, image: b}]}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: one-pod, namespace: small}
spec: {hard: {pods: "1"}}
""",
    "policy.yaml": """apiVersion: v1
kind: ServiceAccount
metadata: {name: forbidden}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: names}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE], resources: ["*"]}
  validations:
  - {expression: "!has(object.metadata.name) || object.metadata.name != 'forbidden'", message: a bad name}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: names}
spec: {policyName: names, validationActions: [Deny]}
""",
    "template.yaml": "apiVersion: v1\nkind: {{ .Values.kind }}\n",
    "chart/Chart.yaml": "name: chart\n",
    "chart/templates/a.yaml": "a: {{ b }}\n",
    "overlay/kustomization.yaml": "resources: [a.yaml]\n",
    "syntax.yaml": "kind: [\nb: c: d\n",
    "duplicate.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first}\n",
    "nothing.yaml": "kind: ConfigMap\n",
    "namespace.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a,\n  namespace: Upper}\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("manifests")
    for name, text in _FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture(scope="module")
def report(folder: Path) -> CheckReport:
    return asyncio.run(validate(ValidationRequest([str(folder)])))


@pytest.fixture
def _collector() -> Iterator[None]:
    """The command switches the collector off, since its process ends soon."""
    yield
    gc.enable()


@pytest.mark.parametrize(
    ("file", "line", "severity", "message"),
    [
        ("broken/deployment.yaml", 11, "error", 'unknown field "spec.replicaz"'),
        ("broken/deployment.yaml", 20, "error", 'unknown field "spec.template.spec.containers[0].prots"'),
        ("broken/deployment.yaml", 16, "warning", "there is no PriorityClass urgent"),
        ("broken/pod.yml", 6, "error", "spec.containers[0].name: Invalid value"),
        ("broken/pod.yml", 7, "error", "spec.containers[0].image: Required value"),
        ("broken/pod.yml", 13, "error", 'serviceaccount "builder" not found'),
        ("broken/pod.yml", 20, "error", 'key "name" already set in map'),
        ("broken/pod.yml", 26, "error", "cannot unmarshal string into Go struct field"),
        ("things/a-thing.yaml", 5, "error", "too large"),
        ("things/a-thing.yaml", 8, "error", 'no matches for kind "Unknown" in version "example.com/v1"'),
        ("list.json", 4, "error", 'unknown field "dta"'),
        ("quota.yaml", 6, "error", "exceeded quota: one-pod"),
        ("policy.yaml", 1, "error", "a bad name"),
        ("template.yaml", 2, "error", "yaml: "),
        ("chart/Chart.yaml", 1, "error", "is a Helm chart, not manifests"),
        ("overlay/kustomization.yaml", 1, "error", "is a kustomization, not manifests"),
        ("syntax.yaml", 2, "error", "yaml: "),
        ("duplicate.yaml", 3, "warning", "is also in"),
        ("nothing.yaml", 1, "error", "apiVersion must be set"),
        ("namespace.yaml", 4, "error", 'Namespace "Upper" is invalid'),
    ],
)
def test_each_finding_is_on_the_line_of_its_field(
    report: CheckReport, folder: Path, file: str, line: int, severity: str, message: str
) -> None:
    found = [
        (one.line, one.severity) for one in report.findings if _in(folder, one.file) == file and message in one.message
    ]
    assert found == [(line, severity)]


def _in(folder: Path, file: str) -> str:
    return str(Path(file).relative_to(folder))


def test_what_is_well_is_not_spoken_of(report: CheckReport, folder: Path) -> None:
    broken = {_in(folder, finding.file) for finding in report.findings}
    assert broken.isdisjoint({"well.yaml", "things/definition.yaml"})
    assert sum(checked.passed for checked in report.checked if _in(folder, checked.file) == "policy.yaml") == 2


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ('serviceaccount "builder" not found', "there is no ServiceAccount builder: add it to the manifests"),
        ('no matches for kind "Unknown"', "name its CustomResourceDefinition with --crds"),
        ('no matches for kind "Ingress"', "it is served as networking.k8s.io/v1"),
        ("is a Helm chart", "helm template"),
        ("is a kustomization", "kubectl kustomize"),
    ],
)
def test_a_hint_says_what_to_do(report: CheckReport, message: str, hint: str) -> None:
    (found,) = [finding for finding in report.findings if message in finding.message]
    assert hint in found.hint


def test_junit_output_is_xml_with_a_failure_for_each_object_that_is_not_well(report: CheckReport) -> None:
    suites = ElementTree.fromstring(render(report, "junit"))
    failed = sum(not checked.passed for checked in report.checked)
    assert len(suites.findall("testsuite/testcase")) == len(report.checked) == int(suites.attrib["tests"])
    assert len(suites.findall("testsuite/testcase/failure")) == failed == int(suites.attrib["failures"])


def test_json_output_counts_what_it_lists(report: CheckReport) -> None:
    said = orjson.loads(render(report, "json"))
    listed = [finding["severity"] for result in said["results"] for finding in result["findings"]]
    assert (listed.count("error"), listed.count("warning")) == (said["errors"], said["warnings"])
    assert said["errors"] == report.count(Severity.ERROR) > 10


def test_github_output_is_one_command_for_each_finding(report: CheckReport, folder: Path) -> None:
    lines = render(report, "github").splitlines()
    assert len(lines) == len(report.findings)
    place = f"file={folder}/broken/deployment.yaml,line=11,title=Deployment shop/web"
    assert f'::error {place}::unknown field "spec.replicaz"' in lines


def test_a_user_may_create_what_the_given_roles_allow(tmp_path: Path) -> None:
    (tmp_path / "roles.yaml").write_text("""apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: writer}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: writer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: writer}
subjects: [{kind: Group, name: writers, apiGroup: rbac.authorization.k8s.io}]
""")
    (tmp_path / "objects.yaml").write_text("""apiVersion: v1
kind: ConfigMap
metadata: {name: a}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: a}
""")
    asked = ValidationRequest(
        [str(tmp_path / "objects.yaml")], [str(tmp_path / "roles.yaml")], User("ann", groups=("writers",)), "team"
    )
    (finding,) = asyncio.run(validate(asked)).findings
    assert (finding.line, finding.subject) == (5, "ServiceAccount a")
    assert 'User "ann" cannot create resource "serviceaccounts"' in finding.message


def test_what_is_given_is_counted_and_needs_no_cleaning(tmp_path: Path) -> None:
    (tmp_path / "given.yaml").write_text("""apiVersion: v1
kind: ConfigMap
metadata: {name: a, uid: 0d6e, resourceVersion: "7", creationTimestamp: "2026-01-01T00:00:00Z"}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: one-map}
spec: {hard: {configmaps: "1"}}
""")
    (tmp_path / "more.json").write_text(
        r'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "\ud83d\ude00"}}'
    )
    (tmp_path / "most.json").write_text('{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}')
    files = [str(tmp_path / "more.json"), str(tmp_path / "most.json")]
    odd, excessive = asyncio.run(validate(ValidationRequest(files, [str(tmp_path / "given.yaml")]))).findings
    assert "metadata.name: Invalid value" in odd.message
    assert "exceeded quota: one-map, requested: configmaps=1, used: configmaps=1" in excessive.message


@pytest.mark.usefixtures("_collector")
@pytest.mark.parametrize(("file", "code"), [("well.yaml", 0), ("list.json", 1)])
def test_the_exit_code_says_whether_all_are_well(
    folder: Path, file: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", str(folder / file)]) == code
    summary = "2 objects checked: 1 valid, 1 invalid\n" if code else "2 objects checked: 2 valid, 0 invalid\n"
    assert capsys.readouterr().out.endswith(summary)


@pytest.mark.usefixtures("_collector")
def test_a_path_without_manifests_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(tmp_path)]) == 2
    assert main(["validate", str(tmp_path / "nowhere")]) == 2
    said = f"Error: {tmp_path}: no manifests\nError: {tmp_path}/nowhere: no such file or directory\n"
    assert capsys.readouterr() == ("", said)


def test_several_versions_have_results_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = tmp_path / "migration.yaml"
    manifest.write_text("""apiVersion: storagemigration.k8s.io/v1
kind: StorageVersionMigration
metadata: {name: secrets}
spec: {resource: {group: "", resource: secrets}}
""")
    assert main(["validate", "--kubernetes-version=1.36,v1.37", str(manifest), "-o", "json"]) == 1
    versions = orjson.loads(capsys.readouterr().out)["versions"]
    assert {version: report["errors"] for version, report in versions.items()} == {"1.36": 1, "1.37": 0}


def test_unreadable_paths_are_reported_once_for_all_versions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", "--kubernetes-version=1.36,1.37", str(tmp_path / "none.yaml")]) == 2
    assert capsys.readouterr().err == f"Error: {tmp_path / 'none.yaml'}: no such file or directory\n"


def test_unknown_versions_are_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["validate", "--kubernetes-version=1.36,1.3", "pod.yaml"])
    assert "expected one of 1.34, 1.35, 1.36, 1.37" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("text", "Kubernetes 1.35:\n"),
        ("github", "%2C Kubernetes 1.35::"),
        ("junit", '<testsuite name="pilothouse validate Kubernetes 1.35"'),
    ],
)
def test_every_format_names_the_version_of_a_result(report: CheckReport, form: str, text: str) -> None:
    rendered = render_matrix({"1.34": report, "1.35": report}, form)
    assert text in rendered
    assert text.replace("1.35", "1.34") in rendered
    if form == "junit":
        assert ElementTree.fromstring(rendered.encode()).get("tests") == str(2 * len(report.checked))
