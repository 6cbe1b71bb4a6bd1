"""Histograms of requests in this process, which all of its servers share."""

from __future__ import annotations

from pilothouse.apiserver.tallies import REGISTRY, HistogramTally

OF_REQUESTS = ("apiserver_admission_", "apiserver_request_", "apiserver_response_", "etcd_request_")


def forget_observations() -> None:
    """Empty the histograms. Earlier tests of the process leave many thousands of samples, and each scrape has them all.

    Rows stay where they are: a server may hold them.
    """
    for tally in set(REGISTRY._names_to_collectors.values()):
        if isinstance(tally, HistogramTally) and tally.labels and tally._family[0].startswith(OF_REQUESTS):
            for row in [*tally._rows.values()]:
                row.counts[:] = [0] * len(row.counts)
                row.sum = 0.0
