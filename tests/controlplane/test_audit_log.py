"""The audit log of a whole server: what it says about requests of every kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving_process import ServeProcess

MAPS = "/api/v1/namespaces/default/configmaps"
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, users: ["system:apiserver"]}
- {level: RequestResponse, verbs: [create, patch, delete], omitManagedFields: true}
- {level: Metadata}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ServeProcess]:
    (folder / "policy.yaml").write_text(POLICY)
    flags = [f"--audit-policy-file={folder / 'policy.yaml'}", f"--audit-log-path={folder / 'audit.log'}"]
    running = ServeProcess(folder / "data", *flags, "--authorization-mode=RBAC")
    yield running
    running.close()


def call(server: ServeProcess, method: str, path: str, body: Any = None, **headers: str) -> int:
    connection = server.connect(as_admin=headers.pop("anonymous", "") == "")
    sent = {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection.request(method, path, json.dumps(body) if body is not None else None, sent)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def logged(folder: Path, audit_id: str) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in (folder / "audit.log").read_text().splitlines()]
    return [event for event in events if event["auditID"] == audit_id]


def test_a_create_is_logged_with_what_was_sent_and_answered(server: ServeProcess, folder: Path) -> None:
    body = {"metadata": {"name": "a"}, "data": {"k": "v"}}
    assert call(server, "POST", f"{MAPS}?fieldManager=me", body, Audit_ID="create-1", User_Agent="tester/1") == 201
    (event,) = logged(folder, "create-1")
    assert (event["kind"], event["apiVersion"], event["level"]) == ("Event", "audit.k8s.io/v1", "RequestResponse")
    assert (event["stage"], event["verb"], event["userAgent"]) == ("ResponseComplete", "create", "tester/1")
    assert event["requestURI"] == f"{MAPS}?fieldManager=me"
    assert event["user"]["groups"] == ["system:masters", "system:authenticated"]
    assert event["sourceIPs"] == ["127.0.0.1"]
    assert event["responseStatus"] == {"metadata": {}, "code": 201}
    assert event["objectRef"] == {
        "resource": "configmaps",
        "namespace": "default",
        "name": "a",
        "apiVersion": "v1",
    }
    assert event["requestObject"]["data"] == event["responseObject"]["data"] == {"k": "v"}
    assert "managedFields" not in event["responseObject"]["metadata"]
    assert event["annotations"]["authorization.k8s.io/decision"] == "allow"


def test_a_refusal_is_logged_with_its_status(server: ServeProcess, folder: Path) -> None:
    assert call(server, "DELETE", f"{MAPS}/missing", Audit_ID="missing-1") == 404
    (event,) = logged(folder, "missing-1")
    status = event["responseStatus"]
    assert (status["status"], status["reason"], status["code"]) == ("Failure", "NotFound", 404)
    assert status["message"] == 'configmaps "missing" not found'


def test_reads_are_logged_without_what_they_read(server: ServeProcess, folder: Path) -> None:
    assert call(server, "GET", "/api/v1/namespaces", Audit_ID="list-1") == 200
    (event,) = logged(folder, "list-1")
    assert event["verb"] == "list"
    assert not {"requestObject", "responseObject"} & set(event)


def test_a_watch_is_logged_when_it_begins_and_when_it_ends(server: ServeProcess, folder: Path) -> None:
    assert call(server, "GET", f"{MAPS}?watch=1&timeoutSeconds=1", Audit_ID="watch-1") == 200
    assert [event["stage"] for event in logged(folder, "watch-1")] == ["ResponseStarted", "ResponseComplete"]


def test_who_acts_as_another_is_logged_as_both(server: ServeProcess, folder: Path) -> None:
    headers = {"Impersonate_User": "bob", "Audit_ID": "as-1"}
    assert call(server, "GET", MAPS, **headers) == 403
    (event,) = logged(folder, "as-1")
    assert event["impersonatedUser"]["username"] == "bob"
    assert event["authenticationMetadata"] == {"impersonationConstraint": "impersonate:user-info"}
    assert event["user"]["username"] != "bob"
    assert event["annotations"]["authorization.k8s.io/decision"] == "forbid"


def test_a_wrong_token_is_logged_without_the_token(server: ServeProcess, folder: Path) -> None:
    headers = {"Authorization": "Bearer s3cr3t", "Audit_ID": "token-1", "anonymous": "yes"}
    assert call(server, "GET", MAPS, **headers) == 401
    (event,) = logged(folder, "token-1")
    assert event["responseStatus"]["message"] == "Authentication failed, attempted: bearer"
    assert "s3cr3t" not in (folder / "audit.log").read_text()
