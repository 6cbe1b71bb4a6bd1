"""No number in a spec costs work or memory in proportion: others are served meanwhile, and the memory stays as it was.

The table is in tests/support/huge_numbers.py. Another client asks `/livez` from a process of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from attacks import Victim
from huge_number import Admin, HugeNumber, clean_up, has_pods, wait_until, without_pods
from huge_numbers import HUGE_NUMBERS, LASTING, ORDINARY_NUMBERS
from livez_client import LivezClient, livez_client
from serving_process import ServeProcess

pytestmark = pytest.mark.slow

LONGEST_WAIT = 0.25
GROWTH = 50 << 20
GROWTH_OF_ALL = 100 << 20
"""Recent changes of each kind are kept for watches that resume: these are bounded, and most of what is left."""
TRIES = 6
ADMIN_TOKEN, TOKEN = "admin-token", "nobodys-token"


class Trial:
    """A server with one simulated node, another client of it, and its memory after ordinary work."""

    def __init__(self, folder: Path) -> None:
        tokens = folder / "tokens.csv"
        tokens.write_text(f'{ADMIN_TOKEN},admin,1,"system:masters"\n{TOKEN},nobody,2\n')
        self._data, self._flags = folder / "data", [f"--token-auth-file={tokens}", "--authorization-mode=RBAC"]
        self._flags += ["--simulated-nodes=1", "--horizontal-pod-autoscaler-sync-period=1s"]
        self._start()
        for row in ORDINARY_NUMBERS:
            row.play(self.victim)
        self.memory = self.server.memory

    def _start(self) -> None:
        self.server = ServeProcess(self._data, *self._flags)
        ca_file = str(self.server.data_dir / "pki/ca.crt")
        self.victim = Victim("127.0.0.1", self.server.port, ca_file, ADMIN_TOKEN, TOKEN)
        pid = self.server.process.pid
        self._context = livez_client(self.victim.host, self.victim.port, ca_file=ca_file, token=TOKEN, pid=pid)
        self.other: LivezClient = self._context.__enter__()

    def restart(self) -> None:
        """Without a word to the server that runs, as after a crash."""
        self.close()
        self._start()

    def close(self) -> None:
        self._context.__exit__(None, None, None)
        self.server.close()


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    trial = Trial(tmp_path_factory.mktemp("numbers"))
    yield trial
    trial.close()


@pytest.mark.parametrize("row", HUGE_NUMBERS, ids=lambda row: row.name)
def test_a_huge_number_keeps_nobody_waiting_and_takes_no_memory(trial: Trial, row: HugeNumber) -> None:
    """A wait that is the server's own comes back each time. Memory is the peak while the row was played."""
    waits: list[float] = []
    before = trial.server.memory
    trial.server.forget_peak()
    while not waits or (waits[-1] > LONGEST_WAIT and len(waits) < TRIES):
        trial.other.longest_wait()
        row.play(trial.victim)
        waits.append(trial.other.longest_wait())
    assert min(waits) <= LONGEST_WAIT
    assert (trial.server.peak_memory - before) >> 20 <= GROWTH >> 20


def test_all_numbers_together_leave_little_memory(trial: Trial) -> None:
    """After the rows above, in the same server: rows that each left a little would add up."""
    grown = trial.server.memory - trial.memory
    print(f"{len(HUGE_NUMBERS)} rows left {grown >> 20} MB")
    assert grown >> 20 <= GROWTH_OF_ALL >> 20


def test_a_server_that_finds_huge_numbers_at_its_start_serves_everybody(trial: Trial) -> None:
    with closing(Admin(trial.victim)) as admin:
        for row in LASTING:
            row.create(admin)
        wait_until(partial(has_pods(3), admin), "no pods were made")
    waits: list[float] = []
    while not waits or (waits[-1] > LONGEST_WAIT and len(waits) < TRIES):
        trial.restart()
        with closing(Admin(trial.victim)) as admin:
            without_pods(admin)
            wait_until(partial(has_pods(3), admin), "no pods were made again")
        waits.append(trial.other.longest_wait())
    assert min(waits) <= LONGEST_WAIT
    assert (trial.server.peak_memory - trial.memory) >> 20 <= GROWTH >> 20
    with closing(Admin(trial.victim)) as admin:
        clean_up(admin, LASTING)
