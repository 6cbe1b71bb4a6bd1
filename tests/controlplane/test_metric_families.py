"""Families of /metrics that say how the parts of a server fare: each is moved by what it counts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping

import pytest
import pytest_asyncio
from custom_resources import eventually
from observations import forget_observations
from prometheus_client.parser import text_string_to_metric_families
from whole_server import create_config_map, whole_server

from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

ITSELF = "127.0.0.1:0"
"""Any free port was asked for."""


class Series:
    """The samples of one scrape. Labels are parsed when a sample is asked for: other tests of this process leave
    many thousands of samples behind, and few are of interest."""

    def __init__(self, text: str) -> None:
        self._lines: dict[str, list[str]] = defaultdict(list)
        for line in text.splitlines():
            if not line.startswith("#"):
                self._lines[re.split("[{ ]", line, maxsplit=1)[0]].append(line)

    def get(self, name: str, labels: Mapping[str, str]) -> float | None:
        for family in text_string_to_metric_families("\n".join(self._lines[name])):
            for sample in family.samples:
                if sample.labels == labels:
                    return sample.value
        return None


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api() -> AsyncIterator[API]:
    forget_observations()
    async with whole_server() as server:
        yield server


async def scraped(api: API) -> Series:
    return Series((await api.request("GET", "/metrics")).body.decode())


def value(series: Series, name: str, **labels: str) -> float:
    return series.get(name, labels) or 0.0


async def test_the_servers_calls_to_itself_are_counted_by_code_and_host(api: API) -> None:
    series = await scraped(api)
    created = value(series, "rest_client_requests_total", code="201", method="POST", host=ITSELF)
    assert created > 0
    to = {"verb": "POST", "host": ITSELF}
    assert value(series, "rest_client_request_duration_seconds_count", **to) >= created
    assert value(series, "rest_client_request_size_bytes_sum", **to) > created
    assert value(series, "rest_client_response_size_bytes_sum", **to) > created


async def test_calls_to_webhooks_are_counted_by_the_host_in_their_urls(api: API) -> None:
    webhook = {
        "name": "nobody.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/nobody"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["limitranges"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
    }
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    await api.request("POST", path, {**kind, "metadata": {"name": "nobody"}, "webhooks": [webhook]})
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "a"}}
    before = await scraped(api)
    assert (await api.request("POST", "/api/v1/namespaces/default/limitranges", limits)).status == 201
    after = await scraped(api)
    for name, labels in (
        ("rest_client_requests_total", {"code": "<error>", "method": "POST"}),
        ("rest_client_request_duration_seconds_count", {"verb": "POST"}),
        ("rest_client_request_size_bytes_count", {"verb": "POST"}),
    ):
        labels = {**labels, "host": "127.0.0.1:1"}
        assert value(after, name, **labels) == value(before, name, **labels) + 1


async def test_what_the_caches_are_filled_from_is_counted_as_lists_of_the_store(api: API) -> None:
    series = await scraped(api)
    of = {"group": "", "resource": "namespaces"}
    lists, returned = (value(series, f"apiserver_storage_list{name}_total", **of) for name in ("", "_returned_objects"))
    assert lists > 0
    assert returned == value(series, "apiserver_storage_list_fetched_objects_total", **of)
    assert returned == value(series, "apiserver_storage_list_evaluated_objects_total", **of)
    assert value(series, "apiserver_resource_size_estimate_bytes", **of) > 4 * 100


async def test_rules_of_custom_resources_and_comparisons_of_updates_are_timed(api: API) -> None:
    rules = [{"rule": "self < 100"}]
    spec = {"type": "object", "properties": {"size": {"type": "integer", "x-kubernetes-validations": rules}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }
    names = {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.metrics.example.com"},
        "spec": {"group": "metrics.example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    start = await scraped(api)
    created = await api.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    assert created.status == 201, created.body
    defined = await scraped(api)
    compiled, evaluated = (f"apiserver_cel_{name}_duration_seconds_count" for name in ("compilation", "evaluation"))
    assert value(defined, compiled) > value(start, compiled)
    boat = {"apiVersion": "metrics.example.com/v1", "kind": "Boat", "metadata": {"name": "a"}, "spec": {"size": 1}}
    boats = "/apis/metrics.example.com/v1/namespaces/default/boats"
    await eventually(api, 200, "GET", boats)
    assert (await api.request("POST", boats, boat)).status == 201
    stored = await scraped(api)
    assert value(stored, evaluated) == value(defined, evaluated) + 3  # of the object, its spec and its size
    compared = "apiextensions_apiserver_validation_ratcheting_seconds_count"
    assert value(stored, compared) == value(defined, compared)
    patched = await api.request("PATCH", f"{boats}/a", {"spec": {"size": 2}}, media="application/merge-patch+json")
    assert patched.status == 200, patched.body
    assert value(await scraped(api), compared) == value(stored, compared) + 1


async def test_the_usual_rows_of_pod_security_are_there_before_anything_was_counted(api: API) -> None:
    series = await scraped(api)
    for operation in ("create", "update"):
        of_pods = {"request_operation": operation, "resource": "pod", "subresource": ""}
        policy = {"decision": "allow", "policy_level": "privileged", "policy_version": "latest", "mode": "enforce"}
        for name, labels in (("evaluations", of_pods | policy), ("exemptions", of_pods)):
            assert series.get(f"pod_security_{name}_total", labels) is not None


async def test_flow_control_shows_for_how_long_how_much_of_it_was_used(api: API) -> None:
    before = await scraped(api)
    after = await scraped(api)
    prefix = "apiserver_flowcontrol_"
    for name, labels in (
        ("demand_seats", {"priority_level": "exempt"}),
        ("priority_level_seat_utilization", {"phase": "executing", "priority_level": "exempt"}),
        ("priority_level_request_utilization", {"phase": "executing", "priority_level": "exempt"}),
        ("priority_level_request_utilization", {"phase": "waiting", "priority_level": "workload-low"}),
        ("read_vs_write_current_requests", {"phase": "executing", "request_kind": "readOnly"}),
        ("read_vs_write_current_requests", {"phase": "waiting", "request_kind": "mutating"}),
    ):
        count, used = (f"{prefix}{name}_{part}" for part in ("count", "sum"))
        assert value(after, count, **labels) > value(before, count, **labels) > 0
        if labels.get("phase") != "waiting":  # the request that asks is one
            assert value(after, used, **labels) > value(before, used, **labels)


async def test_writes_sample_how_many_watch_what_they_change(api: API) -> None:
    name, of = "apiserver_flowcontrol_watch_count_samples_count", {"priority_level": "exempt", "flow_schema": "exempt"}
    before = value(await scraped(api), name, **of)
    await create_config_map(api, "watched-by-nobody")
    assert value(await scraped(api), name, **of) == before + 1


async def test_the_versions_that_are_served_are_shown(api: API) -> None:
    versions = {"component": "kube", "binary": "1.36.4", "emulation": "1.36", "min_compat": "1.35"}
    assert value(await scraped(api), "version_info", **versions) == 1


async def test_creates_are_counted_as_about_one_object(api: API) -> None:
    before = await scraped(api)
    await create_config_map(api, "one-of-many")
    of = {"group": "", "version": "v1", "resource": "configmaps", "subresource": "", "component": "apiserver"}
    of |= {"verb": "POST", "scope": "resource", "dry_run": "", "code": "201"}
    after, name = await scraped(api), "apiserver_request_total"
    assert value(after, name, **of) == value(before, name, **of) + 1


async def test_families_are_counted_by_how_stable_they_are(api: API) -> None:
    series, name = await scraped(api), "registered_metrics_total"
    counts = [value(series, name, stability_level=level, deprecated_version="") for level in ("STABLE", "BETA")]
    assert all(counts)


async def test_each_flow_shows_how_many_wait_in_its_queues(api: API) -> None:
    series = await scraped(api)
    flow = {"priority_level": "workload-low", "flow_schema": "service-accounts"}
    assert series.get("apiserver_flowcontrol_current_inqueue_requests", flow) is not None


async def test_a_server_that_has_ended_leaves_no_series_behind(api: API) -> None:
    async with whole_server():
        pass
    text = (await api.request("GET", "/metrics")).body.decode()
    shown = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(shown) == len(set(shown))
