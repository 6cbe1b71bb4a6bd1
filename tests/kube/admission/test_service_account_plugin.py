"""ServiceAccount: which account a pod runs as, and what it gets from it."""

from __future__ import annotations

import pytest
from admission_requests import pod, writing

from pilothouse.kube.admission.service_account import MOUNT_PATH, ServiceAccount
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.objects import Json

ACCOUNTS: dict[str, Json] = {
    "default": {"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "pull"}]},
    "silent": {"metadata": {"name": "silent"}, "automountServiceAccountToken": False},
    "strict": {
        "metadata": {"name": "strict", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}},
        "secrets": [{"name": "mine"}],
    },
}


async def known(namespace: str, name: str) -> Json | None:
    return ACCOUNTS.get(name)


async def admitted(obj: Json) -> Json:
    await ServiceAccount(known).admit(writing(obj))
    spec: Json = obj["spec"]
    return spec


async def refusal(obj: Json) -> str:
    with pytest.raises(Forbidden) as refused:
        await admitted(obj)
    return refused.value.message


async def test_a_pod_that_names_no_account_runs_as_the_default_one_and_gets_its_pull_secrets() -> None:
    spec = await admitted(pod())
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
    assert spec["imagePullSecrets"] == [{"name": "pull"}]


async def test_every_container_mounts_the_token_under_one_name() -> None:
    spec = await admitted(pod(initContainers=[{"name": "i"}]))
    (volume,) = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert [next(iter(source)) for source in volume["projected"]["sources"]] == [
        "serviceAccountToken",
        "configMap",
        "downwardAPI",
    ]
    for container in (*spec["initContainers"], *spec["containers"]):
        assert container["volumeMounts"] == [{"name": volume["name"], "readOnly": True, "mountPath": MOUNT_PATH}]


async def test_a_container_that_mounts_something_there_already_is_left_alone() -> None:
    own = {"name": "mine", "mountPath": MOUNT_PATH}
    spec = await admitted(pod(containers=[{"name": "c", "volumeMounts": [own]}]))
    assert spec["containers"][0]["volumeMounts"] == [own]
    assert "volumes" not in spec


@pytest.mark.parametrize(("wish", "mounted"), [(None, False), (True, True)])
async def test_the_wish_of_the_pod_goes_before_that_of_its_account(wish: bool | None, mounted: bool) -> None:
    said = {} if wish is None else {"automountServiceAccountToken": wish}
    spec = await admitted(pod(serviceAccountName="silent", **said))
    assert ("volumes" in spec) is mounted


async def test_an_account_that_does_not_exist_refuses_the_pod() -> None:
    assert await refusal(pod(serviceAccountName="nobody")) == (
        'pods "p" is forbidden: error looking up service account default/nobody: serviceaccount "nobody" not found'
    )


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"volumes": [{"name": "v", "secret": {"secretName": "x"}}]}, 'volume with secret.secretName="x"'),
        (
            {"containers": [{"name": "c", "env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "x"}}}]}]},
            'container c with envVar E referencing secret.secretName="x"',
        ),
        (
            {"initContainers": [{"name": "i", "envFrom": [{"secretRef": {"name": "x"}}]}]},
            'init container i with envFrom referencing secret.secretName="x"',
        ),
        ({"imagePullSecrets": [{"name": "x"}]}, 'imagePullSecrets[0].name="x"'),
    ],
)
async def test_a_pod_of_a_limited_account_may_use_only_the_secrets_of_that_account(spec: Json, said: str) -> None:
    refused = await refusal(pod(serviceAccountName="strict", **spec))
    assert refused.startswith(f'pods "p" is forbidden: {said} is not allowed because service account strict')


async def test_a_secret_that_the_account_names_may_be_used() -> None:
    await admitted(pod(serviceAccountName="strict", volumes=[{"name": "v", "secret": {"secretName": "mine"}}]))


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"serviceAccountName": "default"}, "a mirror pod may not reference service accounts"),
        ({"imagePullSecrets": [{"name": "x"}]}, "a mirror pod may not reference secrets"),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
            "a mirror pod may not use ServiceAccountToken volume projections",
        ),
    ],
)
async def test_a_mirror_pod_has_no_account_and_nothing_that_comes_with_one(spec: Json, why: str) -> None:
    mirror = pod(**spec)
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    assert await refusal(mirror) == f'pods "p" is forbidden: {why}'


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"secretName": "fast", "secret": "no"}},
        {"volumes": [{"name": "v", "csi": {"driver": "d", "volumeAttributes": {"secretName": "shape"}}}]},
    ],
)
async def test_a_mirror_pod_may_use_words_that_are_called_as_secrets_are(spec: Json) -> None:
    mirror = pod(**spec)
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    assert await admitted(mirror) == pod(**spec)["spec"]


async def test_a_mirror_pod_that_needs_nothing_stays_as_it_is() -> None:
    mirror = pod()
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    assert "serviceAccountName" not in await admitted(mirror)
