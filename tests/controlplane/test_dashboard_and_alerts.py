"""The dashboard and the alerts speak of metrics that a server has, with labels that those have, in PromQL."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from observations import forget_observations
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import CollectorRegistry
from whole_server import whole_server

from pilothouse.apiserver.server.health import SLI_REGISTRY
from pilothouse.apiserver.tallies import REGISTRY

promql_parser = pytest.importorskip("promql_parser")

pytestmark = pytest.mark.asyncio(loop_scope="module")

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana/pilothouse.json").read_text())
ALERTS = yaml.safe_load((DEPLOY / "prometheus/alerts.yaml").read_text())
VARIABLES = {"$__rate_interval": "5m", "$job": "a", "$instance": "b"}
OF_PROMETHEUS = {"up": set[str]()}
"""What Prometheus knows of each target itself."""
ADDED = {"job", "instance", "le"}
Known = Mapping[str, set[str]]
"""The labels of each series."""


def expressions() -> list[str]:
    panels = (target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ()))
    rules = (rule["expr"] for group in ALERTS["groups"] for rule in group["rules"])
    return [*map(filled, panels), *rules]


def filled(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def known() -> AsyncIterator[Known]:
    """What a running server serves, and what it would serve if it had anything to count."""
    found: dict[str, set[str]] = {**OF_PROMETHEUS}
    forget_observations()
    async with whole_server() as api:
        for path in ("/metrics", "/metrics/slis"):
            await api.request("GET", "/readyz")
            for family in text_string_to_metric_families((await api.request("GET", path)).body.decode()):
                for sample in family.samples:
                    found.setdefault(sample.name, set()).update(sample.labels)
        for registry in (REGISTRY, SLI_REGISTRY):
            for name, labels in described(registry):
                found.setdefault(name, set()).update(labels)
        yield found


def described(registry: CollectorRegistry) -> Iterator[tuple[str, set[str]]]:
    for name, collector in registry._names_to_collectors.items():
        labels = getattr(collector, "_labelnames", None) or getattr(collector, "labels", None)
        yield name, set(labels if isinstance(labels, tuple) else getattr(collector, "_labels", ()))


def parts(node: Any) -> Iterator[Any]:
    """The node and all that it is made of."""
    yield node
    for name in ("lhs", "rhs", "expr", "vector_selector", "param", "args"):
        inner = getattr(node, name, None)
        for each in inner if isinstance(inner, list) else [inner]:
            if isinstance(each, (promql_parser.Expr, promql_parser.VectorSelector)):
                yield from parts(each)


@pytest.mark.parametrize("expression", expressions())
async def test_every_expression_is_about_something_that_is_served(known: Known, expression: str) -> None:
    nodes = [*parts(promql_parser.parse(expression))]
    names = {node.name for node in nodes if isinstance(node, promql_parser.VectorSelector)}
    assert names, "an expression is about some series"
    assert names <= known.keys()
    used = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", expression))
    for grouped in re.findall(r"\bby \(([^)]*)\)", expression):
        used |= {label.strip() for label in grouped.split(",")}
    assert used <= set[str]().union(*(known[name] for name in names)) | ADDED


def test_every_panel_says_what_it_shows_and_no_two_have_one_number() -> None:
    panels = DASHBOARD["panels"]
    assert all(panel["description"] for panel in panels if panel["type"] != "row")
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels)


def test_every_alert_has_a_name_a_severity_and_words_for_people() -> None:
    rules = [rule for group in ALERTS["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"].keys() == {"summary", "description"}
