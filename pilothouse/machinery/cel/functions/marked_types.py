"""The CEL types of values that are dicts with one marked key, by that key."""

from __future__ import annotations

from pilothouse.machinery.cel.functions import network, quantities, semver, urls
from pilothouse.machinery.cel.functions.formats import MARK as FORMAT

TYPES = {
    network.ADDRESS: "net.IP",
    network.RANGE: "net.CIDR",
    quantities.MARK: "kubernetes.Quantity",
    semver.MARK: "kubernetes.Semver",
    urls.MARK: "kubernetes.URL",
    FORMAT: "kubernetes.NamedFormat",
}
