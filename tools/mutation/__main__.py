"""A sampled mutation run: how many small faults in the package do the tests notice?

    .venv/bin/pip install -e '.[dev]'
    .venv/bin/python -m tools.mutation --seed 7                  150 faults; less than 30 minutes on two cores
    .venv/bin/python -m tools.mutation --seed 7 --faults 40 --under pilothouse/client
    .venv/bin/python -m tools.mutation --at pilothouse/client/wait.py:31     every fault of one line

The sample is the same for the same seed and sources. Each folder has its share of it, and at least one fault. Only the
tests that reach the line are run, the fastest first, until one fails. The first run notes which tests reach which
lines, which takes as long as the tests do under coverage, and keeps that in `.mutation/`; later runs note only what
changed in the tests. Delete the folder to begin afresh after many changes.

It prints a table by folder and what nobody noticed. A survivor is a missing test, unless the fault changes nothing that
can be seen from outside. "unreached" are lines that no test that passed reaches.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tools.mutation.faults import Fault, faults_in
from tools.mutation.reach import Reach
from tools.mutation.trial import Bench, Outcome

_ROOT = Path(__file__).parents[2]
_WORDS = ("noticed", "survived", "unreached")


def main() -> int:
    options = _options()
    reach = Reach(_ROOT, options.processes)
    reach.renew(options.tests)
    chosen = list(_faults_at(options.at)) if options.at else sample(options.faults, options.seed, options.under)
    print(f"{len(chosen)} faults, seed {options.seed}", flush=True)
    outcomes = []
    for outcome in _tried(chosen, reach, options):
        outcomes.append(outcome)
        tests = f"{outcome.tried} of {outcome.reached_by} tests"
        print(f"{outcome.word:9}  {outcome.fault}  ({outcome.noticed_by or tests})", flush=True)
    _print_table(outcomes)
    return 0


def sample(count: int, seed: int, under: Path = Path("pilothouse")) -> list[Fault]:
    """The faults of a seed: each folder gives as many as its share of all places, and at least one."""
    by_folder: dict[str, list[Fault]] = {}
    for path in sorted((_ROOT / under).rglob("*.py")):
        faults = list(faults_in(path.relative_to(_ROOT), _ROOT))
        by_folder.setdefault(folder_of(path.relative_to(_ROOT)), []).extend(faults)
    by_folder = {folder: faults for folder, faults in by_folder.items() if faults}
    shares = _shares({folder: len(faults) for folder, faults in by_folder.items()}, count)
    chance = random.Random(seed)
    chosen = [fault for folder, share in shares.items() for fault in chance.sample(by_folder[folder], share)]
    chance.shuffle(chosen)
    return chosen


def _shares(places: dict[str, int], count: int) -> dict[str, int]:
    """Of `count`, by largest remainder, after one for each."""
    count, total = max(count, len(places)) - len(places), sum(places.values())
    exact = {folder: count * found / total for folder, found in places.items()}
    shares = {folder: 1 + int(share) for folder, share in exact.items()}
    by_remainder = sorted(exact, key=lambda folder: int(exact[folder]) - exact[folder])
    for folder in by_remainder[: count + len(places) - sum(shares.values())]:
        shares[folder] += 1
    return {folder: min(share, places[folder]) for folder, share in shares.items()}


def folder_of(path: Path) -> str:
    """Two levels inside the large layers, one elsewhere."""
    parts = path.parts[1:-1]
    return "/".join(parts[:2] if parts[:1] in (("apiserver",), ("machinery",)) else parts[:1]) or "pilothouse"


def _faults_at(places: list[str]) -> Iterator[Fault]:
    for place in places:
        path, _, line = place.rpartition(":")
        yield from (fault for fault in faults_in(Path(path), _ROOT) if fault.line == int(line))


def _tried(chosen: list[Fault], reach: Reach, options: argparse.Namespace) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder, ThreadPoolExecutor(options.processes) as threads:
        benches: SimpleQueue[Bench] = SimpleQueue()
        for number in range(options.processes):
            (own := Path(folder, str(number))).mkdir()
            benches.put(Bench(_ROOT, own))

        def try_out(job: tuple[Fault, list[str]]) -> Outcome:
            bench = benches.get()
            try:
                return bench.try_out(*job, reach.seconds, options.budget)
            finally:
                benches.put(bench)

        jobs = [(fault, reach.tests_of(fault)) for fault in chosen]
        yield from threads.map(try_out, jobs)


def _print_table(outcomes: list[Outcome]) -> None:
    counts = Counter((folder_of(outcome.fault.path), outcome.word) for outcome in outcomes)
    print(f"\n{'folder':28}" + "".join(f"{word:>11}" for word in _WORDS))
    for folder in sorted({folder for folder, _ in counts}):
        print(f"{folder:28}" + "".join(f"{counts[folder, word]:11}" for word in _WORDS))
    totals = Counter(outcome.word for outcome in outcomes)
    print(f"{'all':28}" + "".join(f"{totals[word]:11}" for word in _WORDS))
    reached = totals["noticed"] + totals["survived"]
    part = totals["noticed"] / max(reached, 1)
    print(f"\n{totals['noticed']} of {reached} faults that tests reach were noticed ({part:.0%})")
    for outcome in outcomes:
        if outcome.word != "noticed":
            print(f"{outcome.word:9}  {outcome.fault}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutation", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=int, default=150)
    parser.add_argument("--under", type=Path, default=Path("pilothouse"), help="only faults in this folder")
    parser.add_argument("--tests", default="tests", help="run again only what changed of the tests in this folder")
    parser.add_argument("--at", metavar="FILE:LINE", action="append", help="every fault of this line, and no sample")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of tests for one fault")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
