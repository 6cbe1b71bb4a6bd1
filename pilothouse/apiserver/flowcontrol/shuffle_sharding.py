"""Shuffle sharding: each flow is dealt a hand of queues, so that two flows seldom share all of theirs.

A flow that floods fills the queues of its hand; another, with even one queue outside of it, is not held up.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache


def flow_hash(schema: str, distinguisher: str) -> int:
    digest = hashlib.sha256(schema.encode() + b"\0" + distinguisher.encode()).digest()
    return int.from_bytes(digest[:8], "little")


@lru_cache(maxsize=4096)
def deal(entropy: int, *, deck: int, hand: int) -> tuple[int, ...]:
    """`hand` different cards of `deck`, the same for the same entropy.

    The remainders are positions among the cards not yet dealt; each is moved past those dealt before it.
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
