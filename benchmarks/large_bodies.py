"""The cost of the dearest bodies: decoding, defaults and validation, the answer, in milliseconds of processor time.

large_bodies.py                        all of them
large_bodies.py YAML                   those whose name has this in it
large_bodies.py --profile finalizers   the dearest functions of one

The last column is the longest time for which no other thread got the interpreter, in milliseconds of wall time: work
beside the event loop holds the loop for that long. About 5 ms are a thread's normal share.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import hostile_bodies
from hostile_bodies import APPLY, BODIES, YAML, HostileBody

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.registry.before import before_create
from pilothouse.apiserver.registry.operations import RequestContext
from pilothouse.apiserver.registry.resource import Resource
from pilothouse.kube.authorization.access_reviews import validate_self_review
from pilothouse.kube.authorization.attributes import question_of
from pilothouse.kube.core.configmaps import CONFIG_MAPS
from pilothouse.kube.core.pods.resource import PODS
from pilothouse.kube.networking.network_policies import NETWORK_POLICIES
from pilothouse.kube.rbac.missing_rights import missing_rights
from pilothouse.kube.rbac.rules import PolicyRule
from pilothouse.machinery.codec.body_errors import strict_refusal
from pilothouse.machinery.codec.decoder import Codec, DecodedBody, decode_object
from pilothouse.machinery.codec.scheme import KUBE
from pilothouse.machinery.codec.yaml_emit import emit_yaml
from pilothouse.machinery.errors import Invalid
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError

REVIEW = GroupVersionKind("authorization.k8s.io", "v1", "SelfSubjectAccessReview")
CLUSTER_ROLE = GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole")
USER = User("mallory", groups=("system:authenticated",))
RESOURCES = {
    hostile_bodies.CONFIG_MAPS: CONFIG_MAPS,
    hostile_bodies.PODS: PODS,
    hostile_bodies.NETWORK_POLICIES: NETWORK_POLICIES,
}
STEPS = ("decode", "validate", "answer")


def kind_of(body: HostileBody) -> GroupVersionKind:
    if resource := RESOURCES.get(body.resource):
        return resource.kind
    return REVIEW if body.resource == hostile_bodies.REVIEWS else CLUSTER_ROLE


def decode(body: HostileBody) -> DecodedBody:
    codec = Codec.YAML if body.media_type in (YAML, APPLY) and not body.text.startswith(b"{") else Codec.JSON
    kind = kind_of(body)
    decoded = decode_object(body.text, codec=codec, default=kind, scheme=KUBE)
    if decoded.strict_errors:
        raise strict_refusal(decoded.gvk, kind, decoded.strict_errors)
    return decoded


def validate(body: HostileBody, obj: Json) -> None:
    """Raises Invalid."""
    if resource := RESOURCES.get(body.resource):
        _before_create(resource, obj)
    elif body.resource == hostile_bodies.REVIEWS:
        if errors := list(validate_self_review(obj)):
            raise Invalid.of(REVIEW.group_kind, "", errors)
        question_of(obj["spec"], USER)
    else:
        missing = missing_rights([PolicyRule(("get",), ("",), ("pods",))], map(PolicyRule.of, obj["rules"]))
        "\n".join(sorted({str(rule) for rule in missing.rules}))


def _before_create(resource: Resource, obj: Json) -> None:
    warnings: list[str] = []
    context = RequestContext("default", resource.group_resource, USER, warnings.append)
    resource.strategy.default(obj)
    before_create(resource.strategy, context, resource.kind.group_kind, obj)


def answer(refusal: StatusError | None, obj: Json) -> None:
    orjson.dumps(refusal.status if refusal else obj)
    if not refusal:
        emit_yaml(obj)


@contextmanager
def ticking(gaps: list[float]) -> Iterator[None]:
    """Notes the longest time for which another thread had to wait for the interpreter."""
    over = threading.Event()

    def tick() -> None:
        last = time.perf_counter()
        while not over.is_set():
            time.sleep(0.0005)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def run(body: HostileBody, timed: Callable[[str, Callable[[], Any]], Any]) -> None:
    refusal, obj = None, {}
    try:
        obj = timed("decode", lambda: decode(body)).obj
        timed("validate", lambda: validate(body, obj))
    except StatusError as error:
        refusal = error
    timed("answer", lambda: answer(refusal, obj))


def measure(name: str, body: HostileBody) -> str:
    spent: dict[str, float] = {}

    def timed(step: str, work: Callable[[], Any]) -> Any:
        began = time.thread_time()
        try:
            return work()
        finally:
            spent[step] = time.thread_time() - began

    gaps: list[float] = []
    body.text  # noqa: B018  (made before the clock runs)
    with ticking(gaps):
        run(body, timed)
    columns = "".join(f"{spent.get(step, 0) * 1000:>12,.1f}" for step in STEPS)
    return f"{name:<32}{len(body.text):>12,}{columns}{max(gaps) * 1000:>14,.1f}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--profile", action="store_true")
    args = parser.parse_args()
    chosen = {name: body for name, body in BODIES.items() if args.name in name}
    if args.profile:
        for body in chosen.values():
            with cProfile.Profile() as profile:
                run(body, lambda step, work: work())
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        return
    gc.freeze()  # as a server does when it is ready
    print(f"{'body':<32}{'bytes':>12}" + "".join(f"{step:>12}" for step in STEPS) + f"{'longest hold':>14}")
    for name, body in chosen.items():
        print(measure(name, body), flush=True)


if __name__ == "__main__":
    main()
