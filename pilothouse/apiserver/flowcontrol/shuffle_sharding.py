"""Shuffle sharding: each flow gets a hand of queues, so that two flows rarely share all queues.

A flooding flow fills the queues of its hand. A flow with a queue outside of that hand is not delayed.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache


def flow_hash(schema: str, distinguisher: str) -> int:
    digest = hashlib.sha256(schema.encode() + b"\0" + distinguisher.encode()).digest()
    return int.from_bytes(digest[:8], "little")


@lru_cache(maxsize=4096)
def deal(entropy: int, *, deck: int, hand: int) -> tuple[int, ...]:
    """Return `hand` distinct cards of `deck`, deterministic by entropy.

    The remainders are positions among the undealt cards; each is shifted past the dealt cards.
    """
    remainders: list[int] = []
    for dealt in range(hand):
        entropy, remainder = divmod(entropy, deck - dealt)
        remainders.append(remainder)
    cards = []
    for position, card in enumerate(remainders):
        for earlier in reversed(remainders[:position]):
            if card >= earlier:
                card += 1
        cards.append(card)
    return tuple(cards)
