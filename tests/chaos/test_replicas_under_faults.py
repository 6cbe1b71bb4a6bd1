"""Replicas on a three-member etcd keep their promises while the network and the processes fail.

    CHAOS_MINUTES=30 python -m pytest tests/chaos -s

goes through all faults, in an order that a seed decides, until the time is over; `CHAOS_SEED` repeats an order, and
`CHAOS_FAULTS` leaves only the faults whose names have that text in them. Only safety is checked, and that everything
comes back in the end.
"""

from __future__ import annotations

import faulthandler
import os
import random
import time
from pathlib import Path

import pytest
from chaos_faults import FAULTS
from chaos_run import ChaosRun, as_table
from network_namespaces import NO_NAMESPACES, can_make_namespaces
from replicated_cluster import replicated_cluster

MINUTES = float(os.environ.get("CHAOS_MINUTES", "0"))
SEED = int(os.environ.get("CHAOS_SEED") or (time.time_ns() % 1_000_000 if MINUTES else 1))
CHOSEN = [fault for fault in FAULTS if os.environ.get("CHAOS_FAULTS", "") in fault.name]
IN_SHORT = (
    "etcd's leader cut off from the other members only",
    "a replica cut off from etcd, and a compaction meanwhile",
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not can_make_namespaces(), reason=NO_NAMESPACES),
    pytest.mark.timeout(MINUTES * 60 + 900),
]


async def test_nothing_acknowledged_is_lost_and_nothing_stale_is_read(tmp_path: Path) -> None:
    print(f"CHAOS_SEED={SEED}")
    faulthandler.cancel_dump_traceback_later()  # pytest's, which would end a long run
    chance = random.Random(SEED)
    replicas = 3 if MINUTES else 2
    async with replicated_cluster(tmp_path, replicas=replicas, seed=SEED) as cluster:
        run = ChaosRun(cluster, chance)
        if MINUTES:
            end = time.monotonic() + MINUTES * 60
            while time.monotonic() < end:
                await run.rounds(chance.sample(CHOSEN, len(CHOSEN)), seconds=(2.0, 9.0))
                print(as_table(run.figures), flush=True)
        else:
            await run.rounds([fault for fault in FAULTS if fault.name in IN_SHORT], seconds=(1.0, 1.0))
    print(as_table(run.figures))
    assert not run.violations
    assert not any(row.lost or row.stale for row in run.figures.values())
    assert all(row.acknowledged for row in run.figures.values())
