"""How much a fuzz test may try. The same examples on every run, unless FUZZ_FACTOR asks for more:

FUZZ_FACTOR=100 python -m pytest tests/fuzz -o faulthandler_timeout=0

takes that many times the examples, and other ones on every run; no test of it is ended by the clock.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

FACTOR = int(os.environ.get("FUZZ_FACTOR", "1"))


def budget(examples: int) -> settings:
    return settings(
        max_examples=examples * FACTOR,
        derandomize=FACTOR == 1,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
    )
