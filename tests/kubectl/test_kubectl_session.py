"""A person works on a deployment and its service with stock kubectl, and reads what kube-apiserver would show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from kubectl import Kubectl
from patience import KUBECTL_TIMEOUT
from printed import table

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: "nginx:1.27", ports: [{containerPort: 80}]}
"""


class In:
    """kubectl in one namespace."""

    def __init__(self, kubectl: Kubectl, namespace: str) -> None:
        self.kubectl = kubectl
        self.namespace = namespace

    def __call__(self, command: str, *more: str, stdin: str = "", env: dict[str, str] | None = None) -> str:
        return self.kubectl(*command.split(), *more, "-n", self.namespace, stdin=stdin, env=env)

    def spec(self, what: str) -> dict[str, Any]:
        found: dict[str, Any] = self.kubectl.json("get", what, "-n", self.namespace)["spec"]
        return found

    def container(self) -> dict[str, object]:
        template = self.spec("deploy/web")["template"]
        assert isinstance(template, dict)
        container: dict[str, object] = template["spec"]["containers"][0]
        return container


@pytest.fixture
def k(kubectl: Kubectl, namespace: str) -> In:
    return In(kubectl, namespace)


def test_created_things_are_shown_with_their_columns(k: In) -> None:
    assert k("create deployment web --image=nginx:1.27 --replicas=2") == "deployment.apps/web created\n"
    assert k("create service clusterip db --tcp=5432:5433") == "service/db created\n"
    assert k("create job once --image=busybox") == "job.batch/once created\n"
    assert k("create cronjob often --image=busybox", "--schedule=*/5 * * * *") == "cronjob.batch/often created\n"
    assert k("create ingress edge", "--rule=a.example/*=web:80") == "ingress.networking.k8s.io/edge created\n"
    assert k("create quota most --hard=pods=3") == "resourcequota/most created\n"
    assert k("create pdb guard --selector=app=web --min-available=1") == "poddisruptionbudget.policy/guard created\n"
    k(f"wait deploy/web --for=jsonpath={{.status.updatedReplicas}}=2 {KUBECTL_TIMEOUT}")
    shown = {what: table(k(f"get {what}")) for what in ("deploy", "svc", "job", "cj", "ing", "pdb")}
    assert shown["deploy"] == [["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"], ["web", "0/2", "2", "0", "AGE"]]
    assert shown["svc"][0] == ["NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"]
    assert [*shown["svc"][1][:2], *shown["svc"][1][3:]] == ["db", "ClusterIP", "<none>", "5432/TCP", "AGE"]
    assert [row[:3] for row in shown["job"]] == [["NAME", "STATUS", "COMPLETIONS"], ["once", "Running", "0/1"]]
    assert shown["cj"][1] == ["often", "*/5 * * * *", "<none>", "False", "0", "<none>", "AGE"]
    assert shown["ing"][1] == ["edge", "<none>", "a.example", "80", "AGE"]
    assert shown["pdb"][1] == ["guard", "1", "N/A", "0", "AGE"]


def test_wide_shows_more_columns(k: In) -> None:
    k("create deployment web --image=nginx:1.27")
    header, row = table(k("get deploy -o wide"))
    assert header[4:] == ["AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    assert row[5:] == ["nginx", "nginx:1.27", "app=web"]


def test_apply_create_change_and_prune_of_a_field(k: In) -> None:
    assert k("apply -f -", stdin=WEB) == "deployment.apps/web created\n"
    assert k("apply -f -", stdin=WEB) == "deployment.apps/web unchanged\n"
    assert (
        k("apply -f -", stdin=WEB.replace(", ports: [{containerPort: 80}]", "")) == "deployment.apps/web configured\n"
    )
    assert "ports" not in k.container()


def test_diff_shows_what_apply_would_change_and_nothing_else(k: In) -> None:
    k("apply -f -", stdin=WEB)
    assert k("diff -f -", stdin=WEB) == ""
    done = k.kubectl.run("diff", "-f", "-", "-n", k.namespace, stdin=WEB.replace("1.27", "1.28"))
    changed = [line for line in done.stdout.splitlines() if re.match(r"[-+] ", line)]
    assert done.returncode == 1, done.stderr
    assert changed == [
        "-  generation: 1",
        "+  generation: 2",
        "-      - image: nginx:1.27",
        "+      - image: nginx:1.28",
    ]


def test_edit_opens_the_object_and_writes_it_back(k: In) -> None:
    k("apply -f -", stdin=WEB)
    edit = {"KUBE_EDITOR": "sed -i 's/replicas: 2/replicas: 7/'"}
    assert k("edit deploy web", env=edit) == "deployment.apps/web edited\n"
    assert k.spec("deploy/web")["replicas"] == 7
    untouched = k.kubectl.run("edit", "deploy", "web", "-n", k.namespace, env={"KUBE_EDITOR": "true"})
    assert untouched.stderr == "Edit cancelled, no changes made.\n"


def test_scale_changes_the_replicas_if_they_are_what_was_thought(k: In) -> None:
    k("apply -f -", stdin=WEB)
    assert k("scale deploy web --replicas=5 --current-replicas=2") == "deployment.apps/web scaled\n"
    assert k.spec("deploy/web")["replicas"] == 5
    refusal = k.kubectl.fails("scale", "deploy/web", "--replicas=1", "--current-replicas=2", "-n", k.namespace)
    assert refusal == "error: Expected replicas to be 2, was 5\n"


def test_set_changes_image_environment_and_resources(k: In) -> None:
    k("apply -f -", stdin=WEB)
    assert k("set image deploy/web main=nginx:1.28") == "deployment.apps/web image updated\n"
    assert k("set env deploy/web COLOUR=blue") == "deployment.apps/web env updated\n"
    resources = k("set resources deploy/web --limits=cpu=500m,memory=1Gi --requests=cpu=0.1")
    assert resources == "deployment.apps/web resource requirements updated\n"
    container = k.container()
    assert container["image"] == "nginx:1.28"
    assert container["env"] == [{"name": "COLOUR", "value": "blue"}]
    assert container["resources"] == {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "100m"}}


def test_a_rollout_is_restarted_paused_and_resumed(k: In) -> None:
    k("apply -f -", stdin=WEB)
    assert k("rollout restart deploy/web") == "deployment.apps/web restarted\n"
    assert k("rollout pause deploy/web") == "deployment.apps/web paused\n"
    assert "already paused" in k.kubectl.fails("rollout", "pause", "deploy/web", "-n", k.namespace)
    assert k("rollout resume deploy/web") == "deployment.apps/web resumed\n"


def test_expose_makes_a_service_for_the_pods_of_a_deployment(k: In) -> None:
    k("apply -f -", stdin=WEB)
    assert k("expose deploy web --port=8080 --target-port=80 --type=NodePort") == "service/web exposed\n"
    spec = k.spec("svc/web")
    port = spec["ports"][0]
    assert spec["selector"] == {"app": "web"}
    assert table(k("get svc web"))[1][4] == f"8080:{port['nodePort']}/TCP"


def test_autoscale_makes_an_autoscaler(k: In) -> None:
    k("apply -f -", stdin=WEB)
    said = k("autoscale deploy web --min=2 --max=5 --cpu-percent=70")
    assert said == "horizontalpodautoscaler.autoscaling/web autoscaled\n"
    assert table(k("get hpa"))[1] == ["web", "Deployment/web", "cpu: <unknown>/70%", "2", "5", "0", "AGE"]
    assert k.spec("horizontalpodautoscalers.v1.autoscaling/web")["targetCPUUtilizationPercentage"] == 70


def test_labels_are_set_refused_changed_and_removed(k: In) -> None:
    k("apply -f -", stdin=WEB)
    assert k("label deploy web tier=front") == "deployment.apps/web labeled\n"
    assert "already has a value (front), and --overwrite is false" in k.kubectl.fails(
        "label", "deploy", "web", "tier=back", "-n", k.namespace
    )
    assert k("label deploy web tier=back --overwrite") == "deployment.apps/web labeled\n"
    assert table(k("get deploy -L tier"))[1][-1] == "back"
    assert k("label deploy web tier-") == "deployment.apps/web unlabeled\n"


def test_wait_returns_when_the_condition_is_met(k: In) -> None:
    k("apply -f -", stdin=WEB)
    # The deployment controller would take a condition of its own back before kubectl begins to wait.
    condition = '{"status":{"conditions":[{"type":"Reviewed","status":"True"}]}}'
    waiting = k.kubectl.start("wait", "deploy/web", "--for=condition=Reviewed", KUBECTL_TIMEOUT, "-n", k.namespace)
    k("patch deploy web --subresource=status --type=merge -p", condition)
    assert waiting.communicate()[0] == "deployment.apps/web condition met\n"
    k("delete deploy web --wait=false")
    assert k(f"wait deploy/web --for=delete {KUBECTL_TIMEOUT}") == ""


def test_everything_of_a_folder_is_deleted_again(k: In, tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(WEB)
    (tmp_path / "more.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}")
    k(f"apply -f {tmp_path}")
    assert k(f"delete -f {tmp_path}") == 'configmap "web" deleted\ndeployment.apps "web" deleted\n'
    left = k.kubectl.run("get", "deploy/web", "cm/web", "--ignore-not-found", "-n", k.namespace)
    assert (left.stdout, left.stderr) == ("", "")


def test_a_mistake_is_told_with_its_field(k: In) -> None:
    refusal = k.kubectl.fails(
        "apply", "-f", "-", "-n", k.namespace, stdin=WEB.replace("app: web}}\n    spec", "a: b}}\n    spec")
    )
    assert refusal == (
        'The Deployment "web" is invalid: spec.template.metadata.labels: Invalid value: {"a":"b"}: '
        "`selector` does not match template `labels`\n"
    )


def test_a_person_asks_what_they_may_do_and_who_they_are(k: In) -> None:
    assert k("auth can-i create deployments.apps") == "yes\n"
    assert table(k("auth can-i --list"))[1] == ["*.*", "[]", "[]", "[*]"]
    assert table(k("auth whoami"))[:3] == [
        ["ATTRIBUTE", "VALUE"],
        ["Username", "kubernetes-admin"],
        ["Groups", "[system:masters system:authenticated]"],
    ]
