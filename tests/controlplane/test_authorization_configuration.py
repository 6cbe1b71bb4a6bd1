"""Authorization from a configuration file: what it may say, and that the server follows it when it changes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving_process import ServeProcess, parsed

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Attributes, Decision
from pilothouse.controlplane.authorization.configuration import read_authorization_configuration
from pilothouse.controlplane.authorization.reload import configured_authorizer
from pilothouse.controlplane.authorization.setup import AuthorizerSources, ChainBuilder
from pilothouse.kube.node_authorizer.graph import NodeGraph
from pilothouse.kube.rbac.policy import RBACPolicy

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n"
DENY = HEAD + "authorizers: [{type: AlwaysDeny, name: alwaysdeny}]"
ALLOW = HEAD + "authorizers: [{type: AlwaysDeny, name: alwaysdeny}, {type: AlwaysAllow, name: alwaysallow}]"


def webhook(kubeconfig: str, **changed: Any) -> str:
    fields = {
        "timeout": "3s",
        "subjectAccessReviewVersion": "v1",
        "failurePolicy": "NoOpinion",
        "connectionInfo": f"{{type: KubeConfigFile, kubeConfigFile: {kubeconfig}}}",
    } | changed
    lines = "\n".join(f"    {name}: {value}" for name, value in fields.items() if value is not None)
    return f"{HEAD}authorizers:\n- type: Webhook\n  name: hook\n  webhook:\n{lines}\n"


def test_what_is_left_out_is_filled_in(tmp_path: Path) -> None:
    file = tmp_path / "k"
    file.touch()
    (read,) = read_authorization_configuration(webhook(str(file), cacheUnauthorizedRequests="false").encode())
    assert read.webhook is not None
    assert (read.webhook.authorized_ttl, read.webhook.unauthorized_ttl, read.webhook.timeout) == (300.0, 0.0, 3.0)
    assert not read.webhook.denies_on_failure


CONDITIONS = "[{expression: 'request.user'}]"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "authorizers: Required value: at least one authorization mode must be defined"),
        (HEAD + "authorizers: []", "authorizers: Required value: at least one authorization mode must be defined"),
        (
            HEAD + "other: 1",
            'failed to load AuthorizationConfiguration from file: strict decoding error: unknown field "other"',
        ),
        (
            HEAD + "authorizers: [{type: RBAC, name: rbac, odd: 1}]",
            "failed to load AuthorizationConfiguration from file: "
            'strict decoding error: unknown field "authorizers[0].odd"',
        ),
        (
            "kind: AuthorizationConfiguration",
            "failed to load AuthorizationConfiguration from file: Object 'apiVersion' is missing",
        ),
        (HEAD + "authorizers: [{name: x}]", "authorizers[0].type: Required value"),
        (
            HEAD + "authorizers: [{type: Magic, name: x}]",
            'authorizers[0].type: Unsupported value: "Magic": supported values: '
            '"ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"',
        ),
        (
            HEAD + "authorizers: [{type: RBAC, name: rbac}, {type: RBAC, name: b}]",
            'authorizers[1].type: Duplicate value: "RBAC"',
        ),
        (HEAD + "authorizers: [{type: RBAC, name: other}]", "expected name rbac for authorizer RBAC instead of other"),
        (
            HEAD + "authorizers: [{type: Webhook, name: x}]",
            "authorizers[0].webhook: Required value: required when type=Webhook",
        ),
        (
            HEAD + "authorizers: [{type: RBAC, name: rbac, webhook: {}}]",
            'authorizers[0].webhook: Invalid value: "non-null": may only be specified when type=Webhook',
        ),
        (
            webhook("rel"),
            'authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "rel": must be an absolute path',
        ),
        (
            webhook("/no/such"),
            'authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "/no/such": '
            "error loading file: stat /no/such: no such file or directory",
        ),
        (
            webhook("/etc/passwd", timeout="31s"),
            'authorizers[0].timeout: Invalid value: "31s": must be > 0s and <= 30s',
        ),
        (webhook("/etc/passwd", timeout=None), "authorizers[0].timeout: Required value"),
        (
            webhook("/etc/passwd", authorizedTTL="-1s"),
            'authorizers[0].authorizedTTL: Invalid value: "-1s": must be > 0s',
        ),
        (
            webhook("/etc/passwd", failurePolicy="Allow"),
            'authorizers[0].failurePolicy: Unsupported value: "Allow": supported values: "NoOpinion", "Deny"',
        ),
        (
            webhook("/etc/passwd", matchConditions=CONDITIONS),
            "[authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: "
            "required if match conditions are specified, authorizers[0].matchConditions[0].expression: "
            'Invalid value: "request.user": must evaluate to bool but got string]',
        ),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused_in_upstreams_words(content: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        read_authorization_configuration(content.encode())
    assert str(caught.value) == message


def test_an_expression_that_names_what_is_not_there_does_not_compile() -> None:
    content = webhook(
        "/etc/passwd",
        matchConditionSubjectAccessReviewVersion="v1",
        matchConditions="[{expression: 'request.nope == 1'}]",
    )
    with pytest.raises(ValueError, match="undefined field 'nope'"):
        read_authorization_configuration(content.encode())


async def test_a_changed_file_replaces_the_authorizers_unless_it_makes_no_sense(tmp_path: Path) -> None:
    file = tmp_path / "authorization.yaml"
    builder = ChainBuilder(AuthorizerSources(RBACPolicy(), NodeGraph()), types=["AlwaysDeny"])
    authorizer, watched = configured_authorizer(file, DENY.encode(), builder)
    question = Attributes(User("jane"), "get", path="/x")

    async def after(content: str) -> Decision:
        file.write_text(content)
        await watched.look()
        return (await authorizer.authorize(question)).decision

    assert await after(DENY) is Decision.NO_OPINION
    assert await after(ALLOW) is Decision.ALLOW
    assert await after("nonsense: [") is Decision.ALLOW
    assert await after(HEAD + "authorizers: [{type: AlwaysAllow, name: alwaysallow}]") is Decision.ALLOW
    with_rbac = HEAD + "authorizers: [{type: RBAC, name: rbac}, {type: AlwaysDeny, name: alwaysdeny}]"
    assert await after(with_rbac) is Decision.ALLOW, "RBAC was not there at the start"
    assert await after(DENY) is Decision.NO_OPINION
    file.unlink()
    await watched.look()
    assert (await authorizer.authorize(question)).decision is Decision.NO_OPINION


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    folder = tmp_path_factory.mktemp("authorization")
    (folder / "tokens.csv").write_text('node,system:node:n1,1,"system:nodes"\njane,jane,2\nbroken,broken,3\n')
    kubeconfig = folder / "nobody.kubeconfig"
    kubeconfig.write_text(
        "current-context: c\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1/'}}]\n"
        "contexts: [{name: c, context: {cluster: c}}]\n"
    )
    config = folder / "authorization.yaml"
    config.write_text(
        HEAD
        + textwrap.dedent(f"""
        authorizers:
        - {{type: Node, name: node}}
        - {{type: RBAC, name: rbac}}
        - type: Webhook
          name: nobody
          webhook:
            timeout: 1s
            subjectAccessReviewVersion: v1
            matchConditionSubjectAccessReviewVersion: v1
            failurePolicy: NoOpinion
            connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {kubeconfig}}}
            matchConditions:
            - expression: request.user == 'broken'
        """)
    )
    running = ServeProcess(
        folder / "data",
        f"--token-auth-file={folder / 'tokens.csv'}",
        f"--authorization-config={config}",
        "--enable-admission-plugins=NodeRestriction",
    )
    yield running
    running.close()


def send(server: ServeProcess, method: str, path: str, body: str = "", token: str = "") -> tuple[int, Any]:
    connection = server.connect(as_admin=not token)
    headers = {"content-type": "application/yaml"} | ({"authorization": f"Bearer {token}"} if token else {})
    connection.request(method, path, body=body or None, headers=headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, parsed(content) if content.startswith(b"{") else content.decode()


def test_a_kubelet_reads_the_secrets_of_its_pods_as_they_come_and_go(server: ServeProcess) -> None:
    secrets, pods = "/api/v1/namespaces/default/secrets", "/api/v1/namespaces/default/pods"
    send(server, "POST", secrets, "{metadata: {name: s}}")
    status, refusal = send(server, "GET", f"{secrets}/s", token="node")
    who = (
        'secrets "s" is forbidden: User "system:node:n1" cannot get resource "secrets" in API group "" in the namespace'
    )
    assert (status, refusal["message"]) == (
        403,
        f"{who} \"default\": no relationship found between node 'n1' and this object",
    )
    send(server, "POST", "/api/v1/namespaces/default/serviceaccounts", "{metadata: {name: default}}")
    pod = (
        "{metadata: {name: p}, spec: {nodeName: n1, containers: [{name: c, image: i}], imagePullSecrets: [{name: s}]}}"
    )
    status, made = send(server, "POST", pods, pod)
    assert status == 201, made
    assert _soon(lambda: send(server, "GET", f"{secrets}/s", token="node")[0], 200)
    status, refusal = send(
        server, "POST", pods, "{metadata: {name: q}, spec: {containers: [{name: c, image: i}]}}", "node"
    )
    assert (status, refusal["message"].partition("is forbidden: ")[2]) == (
        403,
        'pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods',
    )
    status, _ = send(server, "DELETE", f"{pods}/p?gracePeriodSeconds=0")
    assert status == 200
    assert _soon(lambda: send(server, "GET", f"{secrets}/s", token="node")[0], 403)


def _soon(look: Any, wanted: int) -> bool:
    """Within as many looks as a watch event needs, and far more."""
    return any(look() == wanted for _ in range(200))


def test_a_webhook_that_nobody_answers_fails_only_requests_that_it_is_for(server: ServeProcess) -> None:
    status, refusal = send(server, "GET", "/api/v1/nodes", token="jane")
    assert (status, refusal["reason"]) == (403, "Forbidden")
    status, failure = send(server, "GET", "/api/v1/nodes", token="broken")
    assert (status, failure.startswith('Internal Server Error: "/api/v1/nodes": ')) == (500, True)
    spec = "{user: broken, nonResourceAttributes: {path: /x, verb: get}}"
    review = f"{{apiVersion: authorization.k8s.io/v1, kind: SubjectAccessReview, spec: {spec}}}"
    status, answer = send(server, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    assert (status, answer["status"]["allowed"], bool(answer["status"]["evaluationError"])) == (201, False, True)
