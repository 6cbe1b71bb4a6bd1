"""The RBAC authorizer: its answers, and that its index says what looking at every binding would say."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Attributes, Decision, NonResourceRule, ResourceRule
from pilothouse.kube.rbac.authorizer import RBACAuthorizer
from pilothouse.kube.rbac.policy import RBACPolicy, Scoped
from pilothouse.machinery.objects import Json

READ_PODS: Json = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
JANE = User("jane", groups=("devs", "system:authenticated"))


def role(name: str, *rules: Json, namespace: str = "") -> Json:
    return {"metadata": _metadata(name, namespace), "rules": list(rules)}


def binding(name: str, to: str, *subjects: Json, namespace: str = "", kind: str = "ClusterRole") -> Json:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": to}
    return {"metadata": _metadata(name, namespace), "roleRef": reference, "subjects": list(subjects)}


def _metadata(name: str, namespace: str) -> Json:
    return {"name": name, "namespace": namespace} if namespace else {"name": name}


def user(name: str) -> Json:
    return {"kind": "User", "name": name}


def group(name: str) -> Json:
    return {"kind": "Group", "name": name}


def account(name: str, namespace: str = "") -> Json:
    return {"kind": "ServiceAccount", "name": name} | ({"namespace": namespace} if namespace else {})


def pods(who: User = JANE, verb: str = "get", **rest: Any) -> Attributes:
    return Attributes(who, verb, is_resource=True, version="v1", resource="pods", **rest)


@pytest.fixture
def policy() -> RBACPolicy:
    policy = RBACPolicy()
    policy.ready = True
    return policy


async def _decide(policy: RBACPolicy, asked: Attributes) -> tuple[bool, str]:
    answer = await RBACAuthorizer(policy).authorize(asked)
    assert answer.decision is not Decision.DENY
    return answer.decision is Decision.ALLOW, answer.reason


async def test_a_cluster_role_binding_is_for_all_namespaces_and_says_why(policy: RBACPolicy) -> None:
    policy.put_role(role("reader", READ_PODS))
    policy.put_binding(binding("readers", "reader", user("jane")))
    why = 'RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to User "jane"'
    assert await _decide(policy, pods()) == (True, why)
    assert await _decide(policy, pods(namespace="a")) == (True, why)
    assert await _decide(policy, pods(User("joe"))) == (False, "")


async def test_a_role_binding_is_for_its_own_namespace(policy: RBACPolicy) -> None:
    policy.put_role(role("reader", READ_PODS, namespace="a"))
    policy.put_binding(binding("readers", "reader", group("devs"), namespace="a", kind="Role"))
    why = 'RBAC: allowed by RoleBinding "readers/a" of Role "reader" to Group "devs"'
    assert await _decide(policy, pods(namespace="a")) == (True, why)
    assert await _decide(policy, pods(namespace="b")) == (False, "")
    assert await _decide(policy, pods()) == (False, "")


async def test_a_service_account_is_of_the_bindings_namespace_unless_it_says_otherwise(policy: RBACPolicy) -> None:
    policy.put_role(role("reader", READ_PODS))
    policy.put_binding(binding("own", "reader", account("bot"), namespace="a"))
    policy.put_binding(binding("other", "reader", account("bot", "b"), namespace="a"))
    own, other = (User(f"system:serviceaccount:{namespace}:bot") for namespace in "ab")
    assert (await _decide(policy, pods(own, namespace="a")))[1].endswith('to ServiceAccount "bot/a"')
    assert (await _decide(policy, pods(other, namespace="a")))[1].endswith('to ServiceAccount "bot/b"')
    assert await _decide(policy, pods(other, namespace="b")) == (False, "")


async def test_a_service_account_without_a_namespace_is_nobody_to_a_cluster_role_binding(policy: RBACPolicy) -> None:
    policy.put_role(role("reader", READ_PODS))
    policy.put_binding(binding("all", "reader", account("bot")))
    assert await _decide(policy, pods(User("system:serviceaccount::bot"))) == (False, "")


async def test_the_first_subject_of_a_binding_that_applies_is_named(policy: RBACPolicy) -> None:
    policy.put_role(role("reader", READ_PODS))
    policy.put_binding(binding("readers", "reader", user("joe"), group("devs"), user("jane")))
    assert (await _decide(policy, pods()))[1].endswith('to Group "devs"')


async def test_a_role_that_is_not_there_is_named_in_the_refusal(policy: RBACPolicy) -> None:
    policy.put_binding(binding("x", "gone", user("jane")))
    missing = 'clusterrole.rbac.authorization.k8s.io "gone" not found'
    assert await _decide(policy, pods()) == (False, f"RBAC: {missing}")
    policy.put_binding(binding("y", "lost", user("jane"), namespace="a", kind="Role"))
    policy.put_binding(binding("z", "odd", user("jane"), namespace="a", kind="Thing"))
    lost, odd = 'role.rbac.authorization.k8s.io "lost" not found', 'unsupported role reference kind: "Thing"'
    assert await _decide(policy, pods(namespace="a")) == (False, f"RBAC: [{missing}, {lost}, {odd}]")


async def test_names_limit_a_rule_to_objects(policy: RBACPolicy) -> None:
    policy.put_role(role("reader", READ_PODS | {"resourceNames": ["one"]}))
    policy.put_binding(binding("readers", "reader", user("jane")))
    assert (await _decide(policy, pods(name="one")))[0]
    assert not (await _decide(policy, pods(name="two")))[0]
    assert not (await _decide(policy, pods()))[0]


async def test_paths_are_granted_for_the_whole_cluster_only(policy: RBACPolicy) -> None:
    policy.put_role(role("probe", {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/livez/*"]}))
    policy.put_binding(binding("in-a-namespace", "probe", user("jane"), namespace="a"))
    assert not (await _decide(policy, Attributes(JANE, "get", path="/healthz")))[0]
    policy.put_binding(binding("for-all", "probe", user("jane")))
    assert (await _decide(policy, Attributes(JANE, "get", path="/livez/ping")))[0]
    assert not (await _decide(policy, Attributes(JANE, "get", path="/livez")))[0]


async def test_a_change_counts_for_the_next_question(policy: RBACPolicy) -> None:
    policy.put_role(role("reader", READ_PODS))
    policy.put_binding(binding("readers", "reader", user("jane")))
    assert (await _decide(policy, pods()))[0]
    policy.put_binding(binding("readers", "reader", user("joe")))
    assert not (await _decide(policy, pods()))[0]
    policy.put_binding(binding("readers", "reader", user("jane")))
    policy.put_role(role("reader"))
    assert not (await _decide(policy, pods()))[0]
    policy.put_role(role("reader", READ_PODS))
    policy.drop_binding(Scoped("", "readers"))
    assert await _decide(policy, pods()) == (False, "")
    policy.put_binding(binding("readers", "reader", user("jane")))
    policy.drop_role(Scoped("", "reader"))
    assert "not found" in (await _decide(policy, pods()))[1]


async def test_before_the_policy_is_known_there_is_no_opinion() -> None:
    policy = RBACPolicy()
    policy.put_role(role("reader", READ_PODS))
    policy.put_binding(binding("readers", "reader", user("jane")))
    assert await _decide(policy, pods()) == (False, "")


async def test_what_is_remembered_of_questions_is_bounded_in_bytes(policy: RBACPolicy) -> None:
    policy.put_role(role("reader", READ_PODS))
    policy.put_binding(binding("readers", "reader", user("jane")))
    tracemalloc.start()
    for number in range(2_000):
        name = f"{number}{'r' * 20_000}"
        asked = Attributes(JANE, "get", is_resource=True, resource=name)
        assert not (await _decide(policy, asked))[0]
        assert not (await _decide(policy, Attributes(JANE, "get", path=f"/{name}")))[0]
        stranger = User(name, groups=(name, "system:authenticated"))
        assert not (await _decide(policy, Attributes(stranger, "get", path="/")))[0]
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 14 << 20, "of 160 MB of names"
    assert (await _decide(policy, pods()))[0]


async def test_the_rules_of_a_user_are_those_of_all_roles(policy: RBACPolicy) -> None:
    policy.put_role(role("reader", READ_PODS))
    policy.put_role(role("probe", {"verbs": ["get"], "nonResourceURLs": ["/healthz"]}))
    policy.put_binding(binding("a", "reader", user("jane"), namespace="a"))
    policy.put_binding(binding("b", "probe", group("devs")))
    policy.put_binding(binding("c", "gone", group("devs")))
    rules = await RBACAuthorizer(policy).rules_for(JANE, "a")
    assert rules.resources == (ResourceRule(("get",), ("",), ("pods",)),)
    assert rules.paths == (NonResourceRule(("get",), ("/healthz",)),)
    assert rules.error == 'clusterrole.rbac.authorization.k8s.io "gone" not found'


NAMES = st.sampled_from(["x", "y", "z"])
SPACES = st.sampled_from(["", "a", "b"])
SUBJECTS = st.lists(st.builds(user, NAMES) | st.builds(group, NAMES), max_size=3)
RULES = st.builds(
    lambda verbs, resources, names: {"verbs": verbs, "apiGroups": [""], "resources": resources, "resourceNames": names},
    st.lists(st.sampled_from(["get", "list", "*"]), min_size=1, max_size=2),
    st.lists(st.sampled_from(["pods", "pods/log", "*/log", "*"]), min_size=1, max_size=2),
    st.lists(NAMES, max_size=1),
)
CHANGES = st.one_of(
    st.tuples(st.just("role"), NAMES, SPACES, st.lists(RULES, max_size=2)),
    st.tuples(st.just("binding"), NAMES, SPACES, st.tuples(st.sampled_from(["Role", "ClusterRole"]), NAMES, SUBJECTS)),
    st.tuples(st.just("drop role"), NAMES, SPACES, st.none()),
    st.tuples(st.just("drop binding"), NAMES, SPACES, st.none()),
)
QUESTIONS = st.tuples(
    st.sampled_from(["get", "list", "watch"]), st.sampled_from(["", "log"]), SPACES, NAMES, NAMES, st.lists(NAMES)
)


class Scan:
    """The same policy, by looking at everything."""

    def __init__(self) -> None:
        self.roles: dict[tuple[str, str], list[Json]] = {}
        self.bindings: dict[tuple[str, str], Json] = {}

    def allows(self, asked: Attributes) -> bool:
        rules = [
            rule
            for (space, _), each in self.bindings.items()
            if space in ("", asked.namespace) and any(_applies(subject, asked.user) for subject in each["subjects"])
            for rule in self.roles.get(
                (space if each["roleRef"]["kind"] == "Role" else "", each["roleRef"]["name"]), []
            )
        ]
        return any(_allows(rule, asked) for rule in rules)

    def rules_of(self, reference: Json, space: str) -> list[Json]:
        return self.roles.get((space if reference["kind"] == "Role" else "", reference["name"]), [])


def _applies(subject: Json, who: User) -> bool:
    return bool(subject["name"] == who.name if subject["kind"] == "User" else subject["name"] in who.groups)


def _allows(rule: Json, asked: Attributes) -> bool:
    wanted = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    resources = {"*", wanted} | ({f"*/{asked.subresource}"} if asked.subresource else set())
    return bool(
        {"*", asked.verb} & set(rule["verbs"])
        and resources & set(rule["resources"])
        and (not rule["resourceNames"] or asked.name in rule["resourceNames"])
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(CHANGES, max_size=12), st.lists(QUESTIONS, min_size=1, max_size=6))
async def test_the_index_answers_as_looking_at_every_binding_would(changes: list[Any], questions: list[Any]) -> None:
    policy, scan = RBACPolicy(), Scan()
    policy.ready = True
    for change in changes:
        _apply(policy, scan, *change)
        for verb, subresource, namespace, name, who, groups in questions:
            asked = pods(User(who, groups=tuple(groups)), verb, subresource=subresource, namespace=namespace, name=name)
            assert (await _decide(policy, asked))[0] is scan.allows(asked)


def _apply(policy: RBACPolicy, scan: Scan, what: str, name: str, space: str, content: Any) -> None:
    if what == "role":
        scan.roles[(space, name)] = content
        policy.put_role(role(name, *content, namespace=space))
    elif what == "binding":
        kind, to, subjects = content
        scan.bindings[(space, name)] = binding(name, to, *subjects, namespace=space, kind=kind)
        policy.put_binding(scan.bindings[(space, name)])
    elif what == "drop role":
        scan.roles.pop((space, name), None)
        policy.drop_role(Scoped(space, name))
    else:
        scan.bindings.pop((space, name), None)
        policy.drop_binding(Scoped(space, name))
