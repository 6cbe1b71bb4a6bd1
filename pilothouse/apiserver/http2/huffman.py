"""The Huffman code of RFC 7541, appendix B.

The code is canonical: code lengths determine the codes. Decoding walks the code tree by bytes. Each step (node, byte) →
(symbols, node) is computed on first use and cached, at most 65,536 in total.
"""

from __future__ import annotations

from typing import Final

from pilothouse.machinery.bounded_cache import bounded_cache

# fmt: off
CODE_LENGTHS: Final = (
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6,
    6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6,
    6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22,
    20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23,
    22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22,
    23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22,
    25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
)
# fmt: on

EOS: Final = 256

_Tree = list[list[int]]
"""Node → two branches: a node (>= 0), or a symbol as -1 - symbol."""


class HuffmanError(ValueError):
    """Invalid Huffman-coded string."""


class LongString:
    """A string decoded incrementally, to bound the work per fragment."""

    __slots__ = ("_out", "_state", "taken")

    def __init__(self) -> None:
        self.taken = 0  # coded bytes consumed
        self._state = 0
        self._out = bytearray()

    def take(self, data: bytes) -> None:
        """Decode a fragment. Raises HuffmanError."""
        state, out, steps = self._state, [], _STEPS
        for byte in data:
            decoded, state = steps[state | byte]
            out.append(decoded)
        self._out += b"".join(out)
        self._state = state
        self.taken += len(data)

    def whole(self) -> bytes:
        """Return the decoded string. Raises HuffmanError."""
        if self._state not in _ENDS:
            raise HuffmanError("the string ends inside a symbol")
        return bytes(self._out)


def _tree() -> _Tree:
    tree: _Tree = [[0, 0]]
    code, previous = 0, 0
    for length, symbol in sorted((length, symbol) for symbol, length in enumerate(CODE_LENGTHS)):
        code <<= length - previous
        previous = length
        node = 0
        for shift in range(length - 1, 0, -1):
            bit = code >> shift & 1
            if tree[node][bit] == 0:
                tree.append([0, 0])
                tree[node][bit] = len(tree) - 1
            node = tree[node][bit]
        tree[node][code & 1] = -1 - symbol
        code += 1
    return tree


def _padding(tree: _Tree) -> frozenset[int]:
    """Return the valid end nodes: reached from the root by fewer than eight ones."""
    node, nodes = 0, {0}
    for _ in range(7):
        node = tree[node][1]
        nodes.add(node)
    return frozenset(nodes)


class _Steps(dict[int, tuple[bytes, int]]):
    """(node << 8 | byte) → (decoded, next node << 8), filled on demand."""

    def __missing__(self, key: int) -> tuple[bytes, int]:
        node, out = key >> 8, bytearray()
        for shift in range(7, -1, -1):
            node = _TREE[node][key >> shift & 1]
            if node < 0:
                symbol = -1 - node
                if symbol == EOS:
                    raise HuffmanError("the end-of-string symbol occurs in the string")
                out.append(symbol)
                node = 0
        step = self[key] = (bytes(out), node << 8)
        return step


_TREE: Final = _tree()
_ENDS: Final = frozenset(node << 8 for node in _padding(_TREE))
_STEPS: Final = _Steps()


# Header values repeat.
@bounded_cache(entries=4096, key_bytes=256)
def decode(data: bytes) -> bytes:
    """Decode a string. Raises HuffmanError."""
    state, out, steps = 0, [], _STEPS
    for byte in data:
        decoded, state = steps[state | byte]
        out.append(decoded)
    if state not in _ENDS:
        raise HuffmanError("the string ends inside a symbol")
    return b"".join(out)
