"""The bytes of CBOR: heads of data items, and the names that upstream's library has for their types."""

from __future__ import annotations

from struct import pack

UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, SIMPLE = range(8)
NAMES = (
    "positive integer",
    "negative integer",
    "byte string",
    "UTF-8 text string",
    "array",
    "map",
    "tag",
    "primitives",
)

SELF_DESCRIBED = b"\xd9\xd9\xf7"
"""The head of the tag around whole objects, which tells CBOR from everything else."""
SELF_DESCRIBED_TAG = 55799
BREAK = 0xFF
INDEFINITE = 31
"""The additional information of items that end with a break."""
FALSE, TRUE, NULL, UNDEFINED = 20, 21, 22, 23
FLOATS = {25: ">e", 26: ">f", 27: ">d"}
BASE64URL, BASE64, BASE16 = 21, 22, 23
"""Tags by which byte strings become text, where text is wanted."""

MAX_DEPTH = 254
"""As deep as JSON bodies may be."""
INT64 = 1 << 63

_ARGUMENTS = (">BB", ">BH", ">BI", ">BQ")


def head(major: int, argument: int) -> bytes:
    """Return the head of a data item with the shortest form of its argument."""
    if argument < 24:
        return bytes((major << 5 | argument,))
    size = 0 if argument < 1 << 8 else 1 if argument < 1 << 16 else 2 if argument < 1 << 32 else 3
    return pack(_ARGUMENTS[size], major << 5 | 24 + size, argument)
