"""Numbers that nobody would send in good faith: an answer never has more than its user asked for and may see."""

from __future__ import annotations

import base64

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.apiserver.registry.options import ListOptions
from pilothouse.machinery.objects import Json, name_of, namespace_of
from pilothouse.testing import API

OURS = "/api/v1/namespaces/ateam/secrets"
NUMBERS = [-(2**63), -4, -1, 0, 1, 2, 2**63 - 1]


@pytest.fixture
async def secrets(api: API) -> API:
    """Three of ours, three of another team, which sorts behind us."""
    for namespace in ("ateam", "zteam"):
        await api.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        for name in ("a", "b", "c"):
            await api.request("POST", f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": name}})
    return api


async def listed(api: API, query: str) -> list[Json]:
    answer = await api.request("GET", f"{OURS}?{query}")
    assert answer.status in (200, 400, 410), answer.body
    items: list[Json] = answer.json.get("items", [])
    return items


def token(**fields: object) -> str:
    raw = orjson.dumps({"v": "meta.k8s.io/v1", **fields})
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


async def test_a_negative_limit_is_no_limit(secrets: API) -> None:
    for limit in (-(2**63), -7, -3, -1):
        found = await listed(secrets, f"limit={limit}")
        assert [(namespace_of(item), name_of(item)) for item in found] == [("ateam", name) for name in "abc"]


async def test_a_negative_limit_deletes_nothing_of_another_namespace(secrets: API) -> None:
    answer = await secrets.request("DELETE", f"{OURS}?limit=-1")
    assert answer.status == 200
    assert await listed(secrets, "") == []
    others = (await secrets.request("GET", "/api/v1/namespaces/zteam/secrets")).json["items"]
    assert [name_of(item) for item in others] == ["a", "b", "c"]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    limit=st.sampled_from(NUMBERS),
    revision=st.integers(-3, 1),
    start=st.one_of(
        st.text(max_size=8),
        st.lists(st.sampled_from(["/", "..", ".", "a", "zteam", "secrets", "\0"]), max_size=8).map("".join),
    ),
)
async def test_no_continue_token_leads_out_of_the_namespace(
    secrets: API, limit: int, revision: int, start: str
) -> None:
    found = await listed(secrets, f"limit={limit}&continue={token(rv=revision, start=start)}")
    assert {namespace_of(item) for item in found} <= {"ateam"}


@pytest.mark.parametrize("version", ["-1", "-9223372036854775808"])
async def test_a_negative_resource_version_is_refused(secrets: API, version: str) -> None:
    why = f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
    answer = await secrets.request("GET", f"{OURS}?resourceVersion={version}")
    assert (answer.status, answer.json["message"]) == (400, f"invalid resource version: {why}")
    answer = await secrets.request("GET", f"{OURS}?watch=1&resourceVersion={version}")
    assert (answer.status, answer.json["message"]) == (500, why)


@pytest.mark.parametrize("seconds", [-(2**63) + 1, -1, 9223372037, 2**63 - 1])
async def test_a_watch_whose_time_is_up_before_it_begins_ends(secrets: API, seconds: int) -> None:
    answer = await secrets.request("GET", f"{OURS}?watch=1&timeoutSeconds={seconds}")
    assert answer.status == 200


@pytest.mark.parametrize(("asked", "kept"), [(-(2**63), 1), (-1, 1), (9223372037, 9223372037), (2**63 - 1, 2**63 - 1)])
async def test_a_grace_period_may_be_any_number(secrets: API, asked: int, kept: int) -> None:
    pods = "/api/v1/namespaces/ateam/pods"
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False}
    created = await secrets.request("POST", pods, {"metadata": {"name": "p"}, "spec": spec})
    assert created.status == 201, created.body
    deleted = await secrets.request("DELETE", f"{pods}/p?gracePeriodSeconds={asked}")
    assert deleted.status == 200, deleted.body
    assert deleted.json["metadata"]["deletionGracePeriodSeconds"] == kept
    shortened = await secrets.request("DELETE", f"{pods}/p?gracePeriodSeconds=0")
    assert shortened.status == 200, shortened.body


def test_options_with_a_negative_limit_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="limit"):
        ListOptions(limit=-1)
