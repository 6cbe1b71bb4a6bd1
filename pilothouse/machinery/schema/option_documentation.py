"""What the fields of options kinds are for. The published definitions have only those options that come in bodies."""

from __future__ import annotations

from pilothouse.machinery.schema import documentation

_DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
_IN_DELETE_OPTIONS = frozenset(
    {
        "dryRun",
        "gracePeriodSeconds",
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "orphanDependents",
        "propagationPolicy",
    }
)

_TEXTS = {
    "labelSelector": "Only objects whose labels match this selector. Empty selects everything.",
    "fieldSelector": "Only objects whose fields match this selector. Empty selects everything.",
    "watch": "Instead of a list, stream what is added, modified and deleted, beginning after resourceVersion.",
    "allowWatchBookmarks": (
        "Ask for events of type BOOKMARK in a watch, which tell the newest resourceVersion when nothing else happens. "
        "How often they come is up to the server."
    ),
    "resourceVersion": (
        "Which state the answer may come from: the newest when unset, any when 0, else one that is at least as new, "
        "or exactly this one, as resourceVersionMatch says."
    ),
    "resourceVersionMatch": "How a list uses resourceVersion: `Exact` or `NotOlderThan`.",
    "timeoutSeconds": "End the call after this time, whatever happens in it.",
    "limit": (
        "At most so many objects. When there are more, the list's metadata has a `continue` token for the next page; "
        "all pages together show one moment."
    ),
    "continue": (
        "The token from the previous page of a list with the same parameters. A token that has expired is answered "
        "with 410 and one for a list that goes on from there in the newest state."
    ),
    "sendInitialEvents": (
        "Begin a watch with events for the objects there are, then a bookmark with the annotation "
        '`"k8s.io/initial-events-end": "true"`, then the changes. Needs resourceVersionMatch=NotOlderThan.'
    ),
    "shardSelector": "Only objects whose hash is in the given ranges. Needs the feature ShardedListAndWatch.",
    "fieldManager": (
        "The name of who or what makes these changes, of at most 128 printable characters. Required for apply patches."
    ),
    "fieldValidation": (
        "What happens to unknown and duplicate fields: `Ignore` drops them, `Warn` (the default) drops them and sends "
        "a warning for each, `Strict` refuses the request."
    ),
    "force": "Take over fields that other managers own. For apply patches only.",
    "container": "The container, where the pod has more than one.",
    "command": "The command with its arguments, one parameter each. No shell is involved.",
    "stdin": "Connect the standard input.",
    "stdout": "Connect the standard output.",
    "stderr": "Connect the standard error.",
    "tty": "Allocate a terminal.",
    "ports": "The ports to forward. Required with WebSockets.",
    "path": "The path behind the proxy, with its query.",
    "follow": "Go on with new lines as they are written.",
    "previous": "The log of the container's previous run.",
    "sinceSeconds": "Only lines of the last seconds. Not together with the parameter sinceTime.",
    "timestamps": "Begin every line with its RFC 3339 time.",
    "tailLines": "Only so many lines from the end.",
    "limitBytes": "End after about so many bytes, perhaps within a line.",
    "insecureSkipTLSVerifyBackend": "Do not check the serving certificate of the kubelet that has the log.",
    "stream": "`All` (the default), `Stdout` or `Stderr`. Only All goes together with tailLines.",
}


def of(field: str) -> str:
    """The text for a field of that name; every options kind means the same by it."""
    if field in _IN_DELETE_OPTIONS:
        return documentation.of(_DELETE_OPTIONS, field)
    return _TEXTS.get(field, "")
