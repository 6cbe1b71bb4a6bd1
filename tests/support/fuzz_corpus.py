"""Bodies that are no objects: too deep, too long, broken, or larger than they look. All of them are refused.

ATTACKS["maps in maps"]      → the bytes, and their media type
"""

from __future__ import annotations

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"


def config_map(data: bytes) -> bytes:
    return b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":' + data + b"}"


def deep(depth: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening * depth + b"1" * (opening != b"[") + closing * depth


def nested_message(depth: int) -> bytes:
    message = b""
    for _ in range(depth):
        size = len(message)
        prefix = b""
        while size > 127:
            prefix, size = prefix + bytes([size & 127 | 128]), size >> 7
        message = b"\x0a" + prefix + bytes([size]) + message
    return b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap" + b"\x12" + message[1:]


def yaml_bomb() -> bytes:
    """Nine aliases of nine aliases of … of a list of nine."""
    rows = [b"a: &a [x,x,x,x,x,x,x,x,x]"]
    rows += [b"%c: &%c [%s]" % (c, c, b",".join([b"*%c" % (c - 1)] * 9)) for c in range(ord("b"), ord("k"))]
    return b"\n".join([b"apiVersion: v1", b"kind: ConfigMap", *rows, b""])


def aliases_of_one_string(size: int = 20_000, aliases: int = 20_000) -> bytes:
    """A hundred kilobytes that stand for hundreds of megabytes."""
    data = b"".join(b"  k%d: *s\n" % at for at in range(aliases))
    return b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  a: &s " + b"x" * size + b"\n" + data


ATTACKS: dict[str, tuple[bytes, str]] = {
    "lists in lists": (config_map(deep(9_000)), JSON),
    "lists in lists without end": (b"[" * 1_000_000, JSON),
    "a million lists": (config_map(deep(1_000_000)), JSON),
    "maps in maps": (config_map(deep(300_000, b'{"a":', b"}")), JSON),
    "flows in flows": (deep(200_000), YAML),
    "flow maps in flow maps": (deep(100_000, b"{a: ", b"}"), YAML),
    "an exponential number of aliases": (yaml_bomb(), YAML),
    "aliases of one long string": (aliases_of_one_string(), YAML),
    "an alias of itself": (b"a: &x\n  b: *x\n", YAML),
    "a map that merges itself": (b"&x a: {<<: *x}\n", YAML),
    "messages in messages": (nested_message(10_000), PROTOBUF),
    "groups in groups": (b"k8s\0\x12\xa0\x8d\x06" + b"\x0b" * 100_000, PROTOBUF),
    "a length beyond the end": (b"k8s\0\x12\xff\xff\xff\xff\x7f", PROTOBUF),
    "a number of eleven bytes": (b"k8s\0\x12\x0c\x0a" + b"\x80" * 10 + b"\x01", PROTOBUF),
    "half an envelope": (b"k8s\0\x0a", PROTOBUF),
    "no envelope": (b"k8s", PROTOBUF),
    "a hundred thousand digits": (config_map(b"1" * 100_000), JSON),
    "a hundred thousand digits in YAML": (b"data: " + b"1" * 100_000, YAML),
    "a key twice": (config_map(b'{"a":"1","a":"2"}'), JSON),
    "nothing": (b"", JSON),
    "null": (b"null", JSON),
    "a byte order mark": (b"\xef\xbb\xbf{}", JSON),
    "a NUL": (b"\0", YAML),
}
