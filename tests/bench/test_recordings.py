"""Recordings: what users asked for, and the roles that allow exactly that."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
import yaml

from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def roles(api: API, recording: str) -> list[dict[str, Any]]:
    command = ("-m", "pilothouse.cli.main", "rbac", "--from-recording", recording, "--kubeconfig", str(api.kubeconfig))
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.PIPE)
    printed, _ = await process.communicate()
    assert process.returncode == 0
    return list(yaml.safe_load_all(printed))


async def test_the_roles_of_a_recording_allow_exactly_what_was_asked_for(api: API) -> None:
    ann = api.as_user("ann", groups=["system:masters"])
    async with api.recording("operator", users=["ann"]) as recording:
        await ann.request("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
        for name in ("a", "b", "a"):
            await ann.request("GET", f"{CONFIG_MAPS}/{name}")
        await ann.request("GET", "/apis/apps/v1/deployments")
        await ann.request("GET", "/metrics")
        await ann.request("GET", "/version")
        await api.request("GET", "/api/v1/secrets")
        status = await recording.status()
        made = await roles(api, recording.name)
    assert (status["total"], status["distinct"]) == (7, 6)
    read = {"user": "ann", "verb": "get", "resource": "configmaps", "namespace": "default", "name": "a", "count": 2}
    assert read in status["requests"]
    assert [(each["kind"], each["metadata"].get("namespace", "")) for each in made] == [
        ("ClusterRole", ""),
        ("ClusterRoleBinding", ""),
        ("Role", "default"),
        ("RoleBinding", "default"),
    ]
    assert made[0]["rules"] == [
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ]
    assert made[2]["rules"] == [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a", "b"], "verbs": ["get"]},
    ]
    assert made[3]["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}]


async def test_many_names_become_a_star(api: API) -> None:
    async with api.recording(users=["pilothouse-testing"]) as recording:
        for number in range(20):
            await api.request("GET", f"{CONFIG_MAPS}/many-{number}")
        requests = (await recording.status())["requests"]
    assert [(each["name"], each["count"]) for each in requests] == [("*", 20)]


async def test_a_log_has_requests_and_events_in_order_with_revisions(api: API) -> None:
    ann = api.as_user("ann", groups=["system:masters"])
    path = "/api/v1/namespaces/default/configmaps"
    recording = {"apiVersion": "testing.pilothouse.dev/v1alpha1", "kind": "Recording", "metadata": {"name": "log"}}
    recordings = "/apis/testing.pilothouse.dev/v1alpha1/recordings"
    await api.request("POST", recordings, {**recording, "spec": {"users": ["ann"], "log": True}})
    listed = (await ann.request("GET", path)).json
    version = listed["metadata"]["resourceVersion"]
    made = (await ann.request("POST", path, {"metadata": {"generateName": "log-"}})).json["metadata"]
    assert (await ann.request("POST", path, {"metadata": {"name": "Wrong"}})).status == 422
    await ann.request("GET", f"{path}?watch=1&timeoutSeconds=1&resourceVersion={version}")
    log = (await api.request("GET", f"{recordings}/log")).json["status"]["log"]
    await api.request("DELETE", f"{recordings}/log")
    assert [(entry["verb"], entry.get("code", 0)) for entry in log] == [
        ("list", 200),
        ("create", 201),
        ("create", 422),
        ("watch", 200),
        ("event", 0),
    ]
    assert log[0]["revision"] == int(version)
    assert (log[1]["name"], log[1]["revision"], log[1]["after"]) == (made["name"], int(made["resourceVersion"]), 1)
    assert log[1]["body"]["metadata"] == {"generateName": "log-"}
    assert (log[4]["event"], log[4]["name"], log[4]["revision"]) == ("ADDED", made["name"], log[1]["revision"])
