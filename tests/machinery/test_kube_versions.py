"""Which versions of an API come first."""

from __future__ import annotations

import random

from pilothouse.machinery.versions import preference


def test_stable_and_new_versions_come_first_and_other_names_last() -> None:
    order = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10", "v0"]
    mixed = random.Random(1).sample(order, len(order))
    assert sorted(mixed, key=preference) == order
