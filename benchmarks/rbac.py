"""The cost of an RBAC check with many bindings: `python benchmarks/rbac.py`.

Half of the bindings are for the whole cluster and half are spread over namespaces. Each line is the mean of one kind of
question; the machine should have nothing else to do.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import uvloop

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Attributes
from pilothouse.kube.rbac.authorizer import RBACAuthorizer
from pilothouse.kube.rbac.bootstrap_policy import bootstrap_objects
from pilothouse.kube.rbac.policy import RBACPolicy
from pilothouse.machinery.objects import Json

BINDINGS = 10_000
NAMESPACES = 500
TIMES = 100_000
ROLES = ("system:aggregate-to-view", "system:aggregate-to-edit", "system:node", "system:discovery")


def binding(number: int) -> Json:
    metadata = {"name": f"b{number}"}
    if number % 2:
        metadata["namespace"] = f"ns{number % NAMESPACES}"
    return {
        "metadata": metadata,
        "roleRef": {"kind": "ClusterRole", "name": ROLES[number % len(ROLES)]},
        "subjects": [
            {"kind": "User", "name": f"user{number}"},
            {"kind": "Group", "name": f"group{number % 100}"},
            {"kind": "ServiceAccount", "namespace": f"ns{number % NAMESPACES}", "name": "default"},
        ],
    }


def filled() -> RBACPolicy:
    policy, known = RBACPolicy(), bootstrap_objects().by_kind
    for role in (*known["ClusterRole"], *known["Role"]):
        policy.put_role(role)
    for each in (*known["ClusterRoleBinding"], *known["RoleBinding"], *map(binding, range(BINDINGS))):
        policy.put_binding(each)
    policy.ready = True
    return policy


def pods(user: User, verb: str = "list", name: str = "") -> Attributes:
    return Attributes(user, verb, is_resource=True, version="v1", resource="pods", namespace="ns1", name=name)


async def timed(what: str, times: int, authorizer: RBACAuthorizer, ask: Callable[[int], Attributes]) -> None:
    questions = [ask(number) for number in range(times)]
    started = perf_counter()
    for question in questions:
        await authorizer.authorize(question)
    print(f"{what:58} {(perf_counter() - started) / times * 1e6:10.2f} µs")


async def main() -> None:
    policy = filled()
    authorizer = RBACAuthorizer(policy)
    few = User("user1", groups=("system:authenticated",))
    many = User("user1", groups=("group1", "group2", "group3", "system:authenticated"))
    await timed("allowed, in few groups", TIMES, authorizer, lambda _: pods(few))
    await timed("allowed, in groups with 300 bindings", TIMES, authorizer, lambda _: pods(many))
    await timed("refused", TIMES, authorizer, lambda _: pods(few, "delete"))
    await timed("refused, another object each time", TIMES, authorizer, lambda n: pods(few, "delete", f"p{n}"))
    await timed("a path", TIMES, authorizer, lambda _: Attributes(few, "get", path="/openapi/v3"))
    await timed("another user each time", 4_000, authorizer, lambda n: pods(User(f"user{n}", groups=few.groups)))
    started = perf_counter()
    for _ in range(1_000):
        policy.put_binding(binding(7))
        await authorizer.authorize(pods(few))
    print(f"{'the first question after a change, with the change':58} {(perf_counter() - started) * 1e3:10.2f} µs")


if __name__ == "__main__":
    uvloop.run(main())
