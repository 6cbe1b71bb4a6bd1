"""The functions that Kubernetes adds to CEL. Types are checked with these; a leading type makes a member function.

Functions that answer an optional are declared to answer anything, since an optional cannot be declared from outside.
"""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.machinery.dataclass import dataclass

AUTHORIZER = "kubernetes.authorization.Authorizer"
RESOURCE_CHECK = "kubernetes.authorization.ResourceCheck"

_ALIASES = {
    "Authorizer": AUTHORIZER,
    "GroupCheck": "kubernetes.authorization.GroupCheck",
    "PathCheck": "kubernetes.authorization.PathCheck",
    "ResourceCheck": RESOURCE_CHECK,
    "Decision": "kubernetes.authorization.Decision",
    "URL": "kubernetes.URL",
    "Quantity": "kubernetes.Quantity",
    "Semver": "kubernetes.Semver",
    "Format": "kubernetes.NamedFormat",
    "IP": "net.IP",
    "CIDR": "net.CIDR",
}
OPAQUE_TYPES = tuple(_ALIASES.values())
"""Types without fields, which only these functions make and take."""

_SUMMABLE = ("int", "uint", "double", "duration")
_COMPARABLE = (*_SUMMABLE, "bool", "timestamp", "string", "bytes")
_FORMATS = (
    "dns1123Label dns1123Subdomain dns1035Label qualifiedName dns1123LabelPrefix dns1123SubdomainPrefix "
    "dns1035LabelPrefix labelValue uri uuid byte date datetime"
)

_SIGNATURES = """
url(string) URL
isURL(string) bool
URL.getScheme() string
URL.getHost() string
URL.getHostname() string
URL.getPort() string
URL.getEscapedPath() string
URL.getQuery() map<string, list<string>>
string.find(string) string
string.findAll(string) list<string>
string.findAll(string, int) list<string>
list<dyn>.indexOf(dyn) int
list<dyn>.lastIndexOf(dyn) int
Authorizer.path(string) PathCheck
Authorizer.group(string) GroupCheck
Authorizer.serviceAccount(string, string) Authorizer
GroupCheck.resource(string) ResourceCheck
ResourceCheck.subresource(string) ResourceCheck
ResourceCheck.namespace(string) ResourceCheck
ResourceCheck.name(string) ResourceCheck
ResourceCheck.fieldSelector(string) ResourceCheck
ResourceCheck.labelSelector(string) ResourceCheck
ResourceCheck.check(string) Decision
PathCheck.check(string) Decision
Decision.errored() bool
Decision.error() string
Decision.allowed() bool
Decision.reason() string
quantity(string) Quantity
isQuantity(string) bool
sign(Quantity) int
Quantity.isGreaterThan(Quantity) bool
Quantity.isLessThan(Quantity) bool
Quantity.compareTo(Quantity) int
Quantity.asApproximateFloat() double
Quantity.asInteger() int
Quantity.isInteger() bool
Quantity.add(Quantity) Quantity
Quantity.add(int) Quantity
Quantity.sub(Quantity) Quantity
Quantity.sub(int) Quantity
ip(string) IP
isIP(string) bool
ip.isCanonical(string) bool
string(IP) string
IP.family() int
IP.isUnspecified() bool
IP.isLoopback() bool
IP.isLinkLocalMulticast() bool
IP.isLinkLocalUnicast() bool
IP.isGlobalUnicast() bool
cidr(string) CIDR
isCIDR(string) bool
string(CIDR) string
CIDR.containsIP(string) bool
CIDR.containsIP(IP) bool
CIDR.containsCIDR(string) bool
CIDR.containsCIDR(CIDR) bool
CIDR.ip() IP
CIDR.prefixLength() int
CIDR.masked() CIDR
format.named(string) dyn
Format.validate(string) dyn
semver(string) Semver
semver(string, bool) Semver
isSemver(string) bool
isSemver(string, bool) bool
Semver.isGreaterThan(Semver) bool
Semver.isLessThan(Semver) bool
Semver.compareTo(Semver) int
Semver.major() int
Semver.minor() int
Semver.patch() int
jsonpatch.escapeKey(string) string
"""


@dataclass(frozen=True, slots=True)
class Signature:
    """One overload; a member function's receiver is its first parameter."""

    function: str
    parameters: tuple[str, ...]
    result: str
    is_member: bool = False

    @property
    def overload(self) -> str:
        return f"{self.function}({', '.join(self.parameters)})"


def signatures() -> Iterator[Signature]:
    yield from map(_parse, _SIGNATURES.strip().splitlines())
    for name in _FORMATS.split():
        yield Signature(f"format.{name}", (), _ALIASES["Format"])
    for kind in _COMPARABLE:
        yield Signature("isSorted", (f"list<{kind}>",), "bool", is_member=True)
        yield Signature("min", (f"list<{kind}>",), kind, is_member=True)
        yield Signature("max", (f"list<{kind}>",), kind, is_member=True)
    for kind in _SUMMABLE:
        yield Signature("sum", (f"list<{kind}>",), kind, is_member=True)
    yield from _numeric_comparisons()


def _numeric_comparisons() -> Iterator[Signature]:
    """Numbers of different types can be compared, but not tested for equality."""
    numbers = ("int", "uint", "double")
    pairs = [(a, b) for a in numbers for b in numbers if a != b]
    return (Signature(f"_{sign}_", pair, "bool") for sign in ("<", "<=", ">", ">=") for pair in pairs)


def _parse(line: str) -> Signature:
    called, _, result = line.partition(") ")
    name, _, given = called.partition("(")
    parameters = tuple(_full_name(each) for each in given.split(", ") if each)
    receiver, dot, member = name.rpartition(".")
    is_member = bool(dot) and (receiver in _ALIASES or receiver in ("string", "list<dyn>"))
    if is_member:
        return Signature(member, (_full_name(receiver), *parameters), _full_name(result), is_member=True)
    return Signature(name, parameters, _full_name(result))


def _full_name(kind: str) -> str:
    return _ALIASES.get(kind, kind)
