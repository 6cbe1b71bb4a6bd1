"""An operator reaches the right state after cut watches, 410, 429, 500, lost responses and changes of the leader."""

from __future__ import annotations

import pytest
from operator_soak import Soak

from pilothouse.testing import server


async def soak(seed: int, steps: int) -> None:
    async with server(testing=True) as api:
        run = Soak(api, seed)
        try:
            await run.run(steps)
            await run.check()
        finally:
            await run.stop()


async def test_a_short_run_ends_in_the_right_state() -> None:
    await soak(seed=1, steps=40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 7))
async def test_a_long_run_ends_in_the_right_state(seed: int) -> None:
    await soak(seed, steps=250)
