"""What a person does with stock kubectl on namespaces, configmaps and secrets."""

from __future__ import annotations

import base64
import json
import re

from kubectl import Kubectl
from patience import KUBECTL_TIMEOUT

CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: web
  labels: {app: web}
data:
  colour: blue
"""


def test_version_shows_a_server_that_kubectl_understands(kubectl: Kubectl) -> None:
    shown = json.loads(kubectl("version", "-o", "json"))
    assert (shown["serverVersion"]["major"], shown["serverVersion"]["minor"]) == ("1", "36")


def test_the_system_namespaces_are_there(kubectl: Kubectl) -> None:
    names = kubectl("get", "namespaces", "-o", "name").split()
    assert {f"namespace/{n}" for n in ("default", "kube-system", "kube-public", "kube-node-lease")} <= set(names)


def test_api_resources_lists_short_names_and_kinds(kubectl: Kubectl) -> None:
    table = kubectl("api-resources", "--api-group=")
    assert re.search(r"^configmaps +cm +v1 +true +ConfigMap$", table, re.MULTILINE)
    assert re.search(r"^namespaces +ns +v1 +false +Namespace$", table, re.MULTILINE)


def test_create_sends_protobuf_and_the_object_reads_back(kubectl: Kubectl, namespace: str) -> None:
    assert kubectl("create", "configmap", "web", "--from-literal=a=1", "-n", namespace) == "configmap/web created\n"
    assert kubectl.json("get", "configmap", "web", "-n", namespace)["data"] == {"a": "1"}


def test_get_prints_the_columns_that_the_server_chose(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "configmap", "web", "--from-literal=a=1", "--from-literal=b=2", "-n", namespace)
    lines = kubectl("get", "cm", "web", "-n", namespace).splitlines()
    assert lines[0].split() == ["NAME", "DATA", "AGE"]
    assert lines[1].split()[:2] == ["web", "2"]
    secret = kubectl("create", "secret", "generic", "s", "--from-literal=p=q", "-n", namespace)
    assert secret == "secret/s created\n"
    assert kubectl("get", "secret", "-n", namespace).splitlines()[1].split()[:3] == ["s", "Opaque", "1"]
    assert kubectl("get", "ns", namespace).splitlines()[1].split()[:2] == [namespace, "Active"]


def test_create_from_a_file_is_validated_by_the_server(kubectl: Kubectl, namespace: str) -> None:
    assert kubectl("create", "-f", "-", "-n", namespace, stdin=CONFIG_MAP) == "configmap/web created\n"
    wrong = CONFIG_MAP.replace("name: web", "name: other") + "colour: red\n"
    assert 'unknown field "colour"' in kubectl.fails("create", "-f", "-", "-n", namespace, stdin=wrong)
    assert "AlreadyExists" in kubectl.fails("create", "-f", "-", "-n", namespace, stdin=CONFIG_MAP)


def test_apply_creates_changes_and_leaves_alone(kubectl: Kubectl, namespace: str) -> None:
    apply = ("apply", "-f", "-", "-n", namespace)
    assert kubectl(*apply, stdin=CONFIG_MAP) == "configmap/web created\n"
    assert kubectl(*apply, stdin=CONFIG_MAP) == "configmap/web unchanged\n"
    assert kubectl(*apply, stdin=CONFIG_MAP.replace("blue", "green")) == "configmap/web configured\n"
    assert kubectl.json("get", "cm", "web", "-n", namespace)["data"] == {"colour": "green"}


def test_label_annotate_and_patch_change_what_they_say(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-f", "-", "-n", namespace, stdin=CONFIG_MAP)
    kubectl("label", "cm", "web", "tier=front", "-n", namespace)
    kubectl("annotate", "cm", "web", "note=hello", "-n", namespace)
    kubectl("patch", "cm", "web", "-n", namespace, "-p", '{"data":{"size":"xl"}}')
    kubectl("patch", "cm", "web", "-n", namespace, "--type=merge", "-p", '{"data":{"colour":null}}')
    kubectl("patch", "cm", "web", "-n", namespace, "--type=json", "-p", '[{"op":"add","path":"/data/n","value":"1"}]')
    found = kubectl.json("get", "cm", "web", "-n", namespace)
    assert found["metadata"]["labels"] == {"app": "web", "tier": "front"}
    assert found["metadata"]["annotations"] == {"note": "hello"}
    assert found["data"] == {"size": "xl", "n": "1"}


def test_edit_sends_what_the_editor_changed(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-f", "-", "-n", namespace, stdin=CONFIG_MAP)
    said = kubectl("edit", "cm", "web", "-n", namespace, env={"KUBE_EDITOR": "sed -i s/blue/black/"})
    assert said == "configmap/web edited\n"
    assert kubectl.json("get", "cm", "web", "-n", namespace)["data"] == {"colour": "black"}


def test_selectors_choose_objects(kubectl: Kubectl, namespace: str) -> None:
    for name, app in (("a", "web"), ("b", "db"), ("c", "web")):
        kubectl("create", "configmap", name, "-n", namespace)
        kubectl("label", "cm", name, f"app={app}", "-n", namespace)
    assert kubectl("get", "cm", "-l", "app=web", "-o", "name", "-n", namespace).split() == [
        "configmap/a",
        "configmap/c",
    ]
    by_field = kubectl("get", "cm", "--field-selector=metadata.name=b", "-o", "name", "-n", namespace)
    assert by_field.split() == ["configmap/b"]


def test_chunked_lists_show_everything_once(kubectl: Kubectl, namespace: str) -> None:
    docs = "---".join(CONFIG_MAP.replace("name: web", f"name: web-{i}") for i in range(12))
    kubectl("create", "-f", "-", "-n", namespace, stdin=docs)
    names = kubectl("get", "cm", "-l", "app=web", "--chunk-size=5", "-o", "name", "-n", namespace).split()
    assert sorted(names) == sorted(f"configmap/web-{i}" for i in range(12))


def test_watch_prints_changes_as_they_happen(kubectl: Kubectl, namespace: str) -> None:
    watch = kubectl.start("get", "secrets", "--watch", "-o", "name", "-n", namespace)
    try:
        assert watch.stdout is not None
        kubectl("create", "secret", "generic", "first", "-n", namespace)
        assert watch.stdout.readline() == "secret/first\n"
        kubectl("create", "secret", "generic", "second", "-n", namespace)
        assert watch.stdout.readline() == "secret/second\n"
    finally:
        watch.terminate()
        watch.communicate()


def test_delete_waits_until_the_object_is_gone(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "configmap", "web", "-n", namespace)
    assert "deleted" in kubectl("delete", "cm", "web", "-n", namespace)
    assert "NotFound" in kubectl.fails("get", "cm", "web", "-n", namespace)


def test_delete_all_by_label_empties_the_collection(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-f", "-", "-n", namespace, stdin=CONFIG_MAP)
    kubectl("delete", "cm", "-l", "app=web", "-n", namespace)
    assert kubectl("get", "cm", "-l", "app=web", "-o", "name", "-n", namespace) == ""


def test_a_dry_run_changes_nothing(kubectl: Kubectl, namespace: str) -> None:
    said = kubectl("create", "configmap", "web", "--dry-run=server", "-n", namespace)
    assert said == "configmap/web created (server dry run)\n"
    assert "NotFound" in kubectl.fails("get", "cm", "web", "-n", namespace)


def test_secrets_keep_their_bytes(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "secret", "generic", "s", "--from-literal=p=\u00e9\x01", "-n", namespace)
    data = kubectl.json("get", "secret", "s", "-n", namespace)["data"]
    assert base64.b64decode(data["p"]).decode() == "\u00e9\x01"


def test_describe_shows_the_data(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-f", "-", "-n", namespace, stdin=CONFIG_MAP)
    described = kubectl("describe", "cm", "web", "-n", namespace)
    assert re.search(r"^colour:\n----\nblue$", described, re.MULTILINE)


def test_replace_refuses_a_stale_resource_version(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-f", "-", "-n", namespace, stdin=CONFIG_MAP)
    stale = json.dumps(kubectl.json("get", "cm", "web", "-n", namespace))
    kubectl("label", "cm", "web", "x=y", "-n", namespace)
    assert "the object has been modified" in kubectl.fails("replace", "-f", "-", "-n", namespace, stdin=stale)


def test_a_deleted_namespace_turns_terminating_and_takes_nothing_new(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "configmap", "held", "-n", namespace)
    kubectl("patch", "configmap", "held", "-n", namespace, "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
    kubectl("delete", "namespace", namespace, "--wait=false")
    assert kubectl.json("get", "ns", namespace)["status"]["phase"] == "Terminating"
    refusal = kubectl.fails("create", "configmap", "late", "-n", namespace)
    assert f"unable to create new content in namespace {namespace} because it is being terminated" in refusal
    kubectl("patch", "configmap", "held", "-n", namespace, "-p", '{"metadata":{"finalizers":null}}')
    kubectl("wait", "--for=delete", f"namespace/{namespace}", KUBECTL_TIMEOUT)


def test_raw_paths_answer_health_and_metrics(kubectl: Kubectl) -> None:
    assert kubectl("get", "--raw", "/readyz") == "ok"
    assert "apiserver_request_total" in kubectl("get", "--raw", "/metrics")
