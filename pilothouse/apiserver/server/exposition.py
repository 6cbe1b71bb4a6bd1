"""Prometheus's text format as Go writes it: families by name, labels and series sorted, numbers as short as they go."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from decimal import Decimal

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})
_TYPES = {"unknown": "counter"}
"""The library knows counters by `_total` at their ends; those that are older than that rule are of no type to it."""


def exposed(registry: CollectorRegistry) -> bytes:
    families = sorted(
        (
            ((f"{family.name}_total" if family.type == "counter" else family.name), family)
            for family in registry.collect()
        ),
        key=lambda named: named[0],
    )
    return "".join(part for name, family in families for part in _family(name, family)).encode()


def _family(name: str, family: Metric) -> Iterator[str]:
    """Nothing for a family without series, as in Go: a vector that nobody has used is not there."""
    if family.samples:
        yield f"# HELP {name} {family.documentation.translate(_HELP_ESCAPES)}\n"
        yield f"# TYPE {name} {_TYPES.get(family.type, family.type)}\n"
        counts = f"{name}_count" if family.type in ("histogram", "summary") else ""
        yield from (_line(sample) for sample in _in_order(family.samples, counts))


def _in_order(samples: Iterable[Sample], counts: str) -> list[Sample]:
    """Those of one histogram stay together: its buckets, the sum, and at last the count, which goes by that name."""

    def place(sample: Sample) -> tuple[list[tuple[str, str]], bool]:
        return [item for item in sorted(sample.labels.items()) if item[0] != "le"], sample.name == counts

    return sorted(samples, key=place)


def _line(sample: Sample) -> str:
    labels = sorted(sample.labels.items(), key=lambda item: (item[0] == "le", item[0]))
    written = ",".join(
        f'{name}="{(number(float(value)) if name == "le" else value.translate(_ESCAPES))}"' for name, value in labels
    )
    return (
        f"{sample.name}{{{written}}} {number(sample.value)}\n" if written else f"{sample.name} {number(sample.value)}\n"
    )


def number(value: float) -> str:
    """As Go's %g with the fewest digits that say the same number: 2, 0.005, 1.5e+06, +Inf."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    shortest = repr(float(value))
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return shortest.removesuffix(".0")
    digits = shortest.lstrip("-").partition("e")[0].replace(".", "").strip("0")
    exponent = Decimal(shortest).adjusted()
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{'-' * (value < 0)}{digits[0]}{fraction}e{exponent:+03d}"
