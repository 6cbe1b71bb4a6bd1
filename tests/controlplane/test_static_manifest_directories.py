"""Directories of static manifests: which are refused at the start, in upstream's words, and how changes are noticed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml
from admission_policies import binding, policy
from prometheus_client import generate_latest

from pilothouse.apiserver.admission.manifests import StaticManifests
from pilothouse.apiserver.admission.policy.source import PolicyManifests
from pilothouse.apiserver.server.features import FeatureGates
from pilothouse.apiserver.tallies import REGISTRY
from pilothouse.controlplane.admission_configuration import static_admission
from pilothouse.kube.admission.config import StaticAdmission
from pilothouse.kube.admission.manifests import LOAD_POLICIES
from pilothouse.machinery.objects import Json

VERSION = "admissionregistration.k8s.io/v1"
WEBHOOKS, POLICIES = "ValidatingAdmissionWebhook", "ValidatingAdmissionPolicy"
ON = FeatureGates({"ManifestBasedAdmissionControlConfig": True})
HOOK = {"name": "a.b.c", "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": []}
BY_URL, BY_SERVICE = {"url": "https://127.0.0.1:1/"}, {"service": {"name": "a", "namespace": "b"}}


def hooks(name: str, *webhooks: Json, kind: str = "ValidatingWebhookConfiguration", **fields: object) -> Json:
    return {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}, "webhooks": list(webhooks), **fields}


def listed(*items: Json) -> Json:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def static(plugin: str, directory: object, gates: FeatureGates = ON) -> StaticAdmission:
    kind = f"{plugin}Configuration" if plugin == POLICIES else "WebhookAdmissionConfiguration"
    configuration = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": kind, "staticManifestsDir": str(directory)}
    return static_admission({plugin: configuration}, {plugin}, gates)


CEL: Any = {"validations": [{"expression": "true"}]}
PARAMS: Any = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
P = "p.static.k8s.io"
SERVER = f"sha256:{hashlib.sha256(b'server-of-test').hexdigest()}"


@pytest.mark.parametrize(
    ("plugin", "manifest", "problem"),
    [
        (WEBHOOKS, hooks("a"), '"a" in file "{file}" must have a name ending with ".static.k8s.io"'),
        (
            WEBHOOKS,
            {"apiVersion": "v1", "kind": "ConfigMap"},
            'no kind "ConfigMap" is registered for version "v1" in scheme '
            '"pkg/admission/plugin/webhook/manifest/loader/loader.go:41"',
        ),
        (
            WEBHOOKS,
            hooks(P, kind="MutatingWebhookConfiguration"),
            "unsupported resource type *v1.MutatingWebhookConfiguration",
        ),
        (WEBHOOKS, hooks(P, foo=1), 'strict decoding error: unknown field "foo"'),
        (
            WEBHOOKS,
            hooks(P, {**HOOK, "clientConfig": BY_SERVICE}),
            'webhook "a.b.c" in "p.static.k8s.io" (file "{file}"): clientConfig.service is not supported for static '
            "manifests; use clientConfig.url instead",
        ),
        (
            WEBHOOKS,
            hooks(P, {**HOOK, "clientConfig": BY_URL, "name": "a.b"}),
            'ValidatingWebhookConfiguration "p.static.k8s.io": webhooks[0].name: Invalid value: "a.b": '
            "should be a domain with at least three segments separated by dots",
        ),
        (WEBHOOKS, {"kind": "Some"}, "Object 'apiVersion' is missing in 'kind: Some'"),
        (
            WEBHOOKS,
            listed(hooks(P), hooks(P)),
            'duplicate name "p.static.k8s.io" found in file "{file}" (previously seen in "{file}")',
        ),
        (
            WEBHOOKS,
            listed(hooks(P, foo=1)),
            'failed to decode list item: strict decoding error: unknown field "foo"',
        ),
        (
            POLICIES,
            binding(P, policyName="p"),
            'binding "p.static.k8s.io": spec.policyName "p" must end with ".static.k8s.io"',
        ),
        (
            POLICIES,
            policy(P, **CEL, **PARAMS),
            'ValidatingAdmissionPolicy "p.static.k8s.io": spec.paramKind is not supported for static manifests',
        ),
        (
            POLICIES,
            policy(P, how="Mutating"),
            "unsupported resource type *v1.MutatingAdmissionPolicy",
        ),
    ],
)
def test_a_manifest_that_makes_no_sense_stops_the_start(
    tmp_path: Path, plugin: str, manifest: Json, problem: str
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(yaml.safe_dump(manifest))
    what = "webhook" if plugin == WEBHOOKS else "policy"
    with pytest.raises(ValueError) as refused:
        static(plugin, tmp_path)
    assert str(refused.value) == (
        f'failed to initialize admission plugin "{plugin}": failed to load static {what} manifests from "{tmp_path}": '
        f"error loading {file}: " + problem.replace("{file}", str(file))
    )


def test_a_binding_needs_its_policy_beside_it(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text(yaml.safe_dump(binding(P)))
    missing = f'binding "{P}" references policy "{P}" which does not exist in the manifest directory'
    with pytest.raises(ValueError, match=missing):
        static(POLICIES, tmp_path)


def test_all_documents_of_all_manifests_are_read_by_their_names(tmp_path: Path) -> None:
    one, two = (hooks(f"{name}.static.k8s.io", {**HOOK, "clientConfig": BY_URL}) for name in "ba")
    (tmp_path / "a.YAML").write_text(f"---\n{yaml.safe_dump(one)}--- # more\n{yaml.safe_dump(listed(two))}---\n")
    (tmp_path / "notes.txt").write_text("no manifest")
    (tmp_path / "folder.yaml").mkdir()
    found = static(WEBHOOKS, tmp_path).webhooks[WEBHOOKS]()
    assert [hook.uid for hook in found] == ["manifest/a.static.k8s.io/a.b.c/0", "manifest/b.static.k8s.io/a.b.c/0"]


@pytest.mark.parametrize(
    ("directory", "gates", "problem"),
    [
        ("/no/such", ON, 'Invalid value: "/no/such": unable to read: stat /no/such: no such file or directory'),
        ("some", ON, 'Invalid value: "some": must be an absolute file path'),
        (__file__, ON, f'Invalid value: "{__file__}": must be a directory'),
        (
            "/",
            FeatureGates(),
            "Forbidden: staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled",
        ),
    ],
)
@pytest.mark.parametrize("plugin", [WEBHOOKS, POLICIES])
def test_a_directory_that_cannot_be_is_refused(plugin: str, directory: str, gates: FeatureGates, problem: str) -> None:
    with pytest.raises(ValueError) as refused:
        static(plugin, directory, gates)
    assert str(refused.value) == f'couldn\'t init admission plugin "{plugin}": staticManifestsDir: {problem}'


def test_plugins_that_do_not_run_read_nothing() -> None:
    assert not static_admission({POLICIES: {"kind": "Other"}}, {WEBHOOKS}, ON).policies


async def changed(manifests: StaticManifests[PolicyManifests]) -> tuple[str, ...]:
    await manifests.look()  # sees that something changes
    await manifests.look()  # and that it has come to rest
    return tuple(each["metadata"]["name"] for each in manifests().policies)


async def test_changes_are_followed_and_what_is_broken_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(yaml.safe_dump(policy(P, **CEL)))
    manifests = StaticManifests(str(tmp_path), LOAD_POLICIES[POLICIES], plugin=POLICIES, server_id="server-of-test")
    first = manifests()
    file.touch()
    assert await changed(manifests) == (P,)
    assert manifests() is first
    file.write_text("kind: [")
    assert await changed(manifests) == (P,)
    assert await changed(manifests) == (P,)
    file.write_text("")
    await manifests.look()
    assert manifests() is first, "a file that is just being written"
    file.write_text(yaml.safe_dump(policy("other.static.k8s.io", **CEL)))
    assert await changed(manifests) == ("other.static.k8s.io",)
    assert _reloads() == {"failure": 1.0, "success": 2.0}
    file.unlink()
    assert await changed(manifests) == ()


def _reloads() -> dict[str, float]:
    lines = [line for line in generate_latest(REGISTRY).decode().splitlines() if "automatic_reloads_total{" in line]
    return {line.split('status="')[1].split('"')[0]: float(line.split()[-1]) for line in lines if SERVER in line}
