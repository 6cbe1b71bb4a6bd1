"""The page of upstream's conformance tests, from `docs/reference/conformance.yaml`: totals, and results by name."""

from __future__ import annotations

from typing import TypedDict

import yaml

from tools.docs.pages import DOCS
from tools.docs.reference.markdown import page, table

TOTAL = 446
"""Number of conformance tests of upstream v1.36."""


class Run(TypedDict):
    passed: int
    programs: int
    others: int


class Area(TypedDict):
    area: str
    needs: str
    passed: list[str]
    other: list[str]


class Results(TypedDict):
    run: Run
    areas: list[Area]


def conformance_results() -> Results:
    """Raises ValueError unless every test has exactly one place, and the totals cover every recorded name."""
    results: Results = yaml.safe_load((DOCS / "reference" / "conformance.yaml").read_text())
    names = [name for area in results["areas"] for name in (*area["passed"], *area["other"])]
    if len(names) != TOTAL or len(set(names)) != TOTAL:
        raise ValueError(f"conformance.yaml has {len(names)} tests, {len(set(names))} different; upstream has {TOTAL}")
    run = results["run"]
    if run["passed"] + run["programs"] + run["others"] != TOTAL:
        raise ValueError(f"the totals of the run in conformance.yaml do not add up to {TOTAL}")
    if named_passes(results) > run["passed"]:
        raise ValueError("conformance.yaml names more passed tests than the run has")
    return results


def named_passes(results: Results) -> int:
    return sum(len(area["passed"]) for area in results["areas"])


def conformance_page() -> str:
    results = conformance_results()
    run, named = results["run"], named_passes(results)
    return page(
        "Upstream's conformance tests",
        "`e2e.test` of Kubernetes v1.36.4, unchanged, runs against `pilothouse serve --simulated-nodes=3`: a control"
        " plane with controllers, a scheduler and nodes, without a single container. Tests of the API pass. Tests that"
        " inspect the effect of a program, or send packets from pod to pod, cannot pass.",
        "## Results",
        table(
            ["result", "tests", "share"],
            [
                _row("passed", run["passed"]),
                _row("failed: the containers of the test must run their programs", run["programs"]),
                _row("failed for other reasons", run["others"]),
                _row("all conformance tests of v1.36", TOTAL),
            ],
        ),
        "In this run, about 20 of the passed tests showed nothing: the proxy to a simulated pod answered every request"
        " with 200, although no program listened.",
        "## Tests by name",
        f"`docs/reference/conformance.yaml` lists all {TOTAL} tests by name, and marks the {named} tests whose pass was"
        " observed and recorded by name. The run above recorded totals only, so the data does not say which of the"
        f" other {TOTAL - named} tests passed in it.",
        table(["area", "passed, by name", "of", "failing tests need"], map(_area, results["areas"])),
        _ABOUT_PROGRAMS,
        _REPEAT,
        tested=_TESTED,
    )


def _row(result: str, tests: int) -> list[str]:
    return [result, str(tests), f"{tests / TOTAL:.1%}"]


def _area(area: Area) -> list[str]:
    passed, other = len(area["passed"]), len(area["other"])
    return [area["area"], str(passed), str(passed + other), area["needs"]]


_ABOUT_PROGRAMS = """\
A test that only requires a pod to end successfully passes trivially
(ServiceAccountIssuerDiscovery). The simulation does not know the behaviour of an image and does not imitate it: you
script failures explicitly ([simulated-nodes.md](simulated-nodes.md)), never with magic names."""

_REPEAT = """\
## Repeat the run

You need `e2e.test` of the release (part of `kubernetes-test-linux-amd64.tar.gz`):

```console no-run="needs upstream's e2e.test"
$ pilothouse serve --data-dir /tmp/cluster --simulated-nodes=3 --authorization-mode=RBAC
$ e2e.test --kubeconfig /tmp/cluster/admin.kubeconfig --provider=skeleton --num-nodes=3 --dump-logs-on-failure=false \\
  --ginkgo.focus='\\[sig-scheduling\\].*\\[Conformance\\]'
```

Tests that cannot pass wait for five or ten minutes before they fail: name them in `--ginkgo.skip`.
The test of continue tokens waits for a compaction, which takes up to ten minutes
(`--etcd-compaction-interval`)."""

_TESTED = (
    "with `e2e.test` of v1.36.4; the command above repeats the run. The page is generated from"
    " `docs/reference/conformance.yaml`, and `tests/docs/test_reference.py` compares the page."
)
