"""The options of `serve`: defaults, completion, and every problem reported at once."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import tools.docs.reference.flags as flags
from pilothouse.controlplane.options.completion import CompletedOptions, InvalidOptions, complete
from pilothouse.controlplane.options.options import SECTIONS, Options, all_flags, usage_sections
from pilothouse.controlplane.options.pilothouse import TaskGroup
from pilothouse.machinery.flags import FlagError, flags_of


def completed(line: str) -> CompletedOptions:
    return complete(Options.parse(line.split()))


def test_defaults_are_kube_apiservers() -> None:
    options = completed("")
    assert options.generic.request_timeout == 60
    assert options.generic.min_request_timeout == 1800
    assert (options.generic.max_requests_inflight, options.generic.max_mutating_requests_inflight) == (400, 200)
    assert options.secure_serving.secure_port == 6443
    assert options.etcd.prefix == "/registry"
    assert options.misc.event_ttl == 3600
    assert options.misc.service_cluster_ip_range == "10.0.0.0/24"
    assert options.authorization.modes == ("AlwaysAllow",)


def test_the_server_listens_on_the_loopback_address_unless_told_otherwise() -> None:
    assert completed("").secure_serving.bind_address == "127.0.0.1"


def test_the_default_options_are_valid(tmp_path: Path) -> None:
    options = completed(f"--data-dir {tmp_path}")
    assert options.validate() is options


def test_the_data_directory_follows_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/xdg")
    assert completed("").pilothouse.data_dir == "/xdg/pilothouse"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/someone")
    assert completed("").pilothouse.data_dir == "/home/someone/.local/share/pilothouse"


def test_the_kubeconfig_is_in_the_data_directory_unless_told_otherwise() -> None:
    assert completed("--data-dir /d").pilothouse.kubeconfig_out == "/d/admin.kubeconfig"
    assert completed("--data-dir /d --kubeconfig-out /k").pilothouse.kubeconfig_out == "/k"


def test_anonymous_requests_are_off_where_everything_is_allowed() -> None:
    assert not completed("").authentication.anonymous_auth
    assert not completed("--anonymous-auth=true").authentication.anonymous_auth
    assert completed("--authorization-mode=RBAC").authentication.anonymous_auth
    assert not completed("--authorization-mode=RBAC --anonymous-auth=false").authentication.anonymous_auth


def test_the_advertised_address_is_the_bound_one_unless_that_is_unspecified() -> None:
    assert completed("--bind-address 192.0.2.7").generic.advertise_address == "192.0.2.7"
    assert completed("--advertise-address 192.0.2.8").generic.advertise_address == "192.0.2.8"
    assert completed("--bind-address 0.0.0.0").generic.advertise_address not in ("", "0.0.0.0")


def test_privileged_containers_are_allowed_on_simulated_nodes_unless_told_otherwise() -> None:
    assert not completed("").misc.allow_privileged
    assert completed("--allow-privileged").misc.allow_privileged
    assert completed("--simulated-nodes=1").misc.allow_privileged
    assert not completed("--simulated-nodes=1 --allow-privileged=false").misc.allow_privileged


def test_positional_arguments_are_refused() -> None:
    with pytest.raises(FlagError, match='does not take any arguments, got \\["now"\\]'):
        Options.parse(["now"])


PROBLEMS = [
    ("--vmodule=a=1", "--vmodule is not supported by this version"),
    ("--tracing-config-file=/no", "tracing-config-file /no does not exist"),
    ("--request-timeout=-1s", "--request-timeout can not be negative value"),
    ("--max-requests-inflight=-1", "--max-requests-inflight can not be negative value"),
    ("--goaway-chance=0.5", "--goaway-chance can not be less than 0 or greater than 0.02"),
    ("--watch-cache=false", "--watch-cache=false is not supported by this version"),
    ("--secure-port=70000", "--secure-port 70000 must be between 0 and 65535, inclusive. 0 for any free port"),
    ("--insecure-port=-1", "--insecure-port -1 must be between 0 and 65535"),
    (
        "--insecure-port=8080 --insecure-bind-address=192.0.2.1",
        "--insecure-bind-address 192.0.2.1: plain HTTP is served on loopback addresses only",
    ),
    ("--tls-sni-cert-key=/no,/no", "--tls-sni-cert-key: no such file: /no"),
    ("--tls-cert-file=/no --tls-private-key-file=/etc/passwd", "--tls-cert-file: no such file: /no"),
    ("--tls-cert-file=/etc/passwd", "--tls-cert-file and --tls-private-key-file must be specified together"),
    ("--tls-min-version=SSL3", 'unknown tls version "SSL3"'),
    ("--tls-cipher-suites=TLS_AES_128_GCM_SHA256,TLS_NONE", "Cipher suite TLS_NONE not supported or doesn't exist"),
    ("--tls-sni-cert-key=a", '--tls-sni-cert-key "a": expected comma separated certificate and key file paths'),
    ("--strict-transport-security-directives=max-age", "--strict-transport-security-directives invalid, allowed"),
    ("--strict-transport-security-directives=preload, ", "empty value in strict-transport-security-directives"),
    ("--cors-allowed-origins=example.com", "regular expression does not pin to start/end of host"),
    ("--cors-allowed-origins=^(x$", "--cors-allowed-origins has an invalid regular expression"),
    ("--etcd-servers=http://a:1 --unsafe-no-fsync", "--unsafe-no-fsync is for the store in --data-dir"),
    ("--etcd-cafile=/etc/passwd", "--etcd-cafile, --etcd-certfile and --etcd-keyfile need --etcd-servers"),
    (
        "--etcd-servers=http://a:1 --etcd-certfile=/etc/passwd",
        "--etcd-certfile and --etcd-keyfile must be specified together",
    ),
    ("--etcd-servers=localhost", '--etcd-servers: "localhost" is no URL'),
    ("--storage-backend=etcd3", "--storage-backend=etcd3 contradicts --etcd-servers"),
    ("--storage-backend=x", "--storage-backend invalid, allowed values: etcd3, sqlite"),
    ("--storage-media-type=application/yaml", '--storage-media-type "application/yaml" invalid'),
    ("--authorization-mode=Maybe", 'authorization-mode "Maybe" is not a valid mode'),
    (
        "--authorization-mode=RBAC,RBAC",
        'authorization-mode ["RBAC" "RBAC"] has mode specified more than once',
    ),
    ("--authorization-mode=ABAC", "authorization-mode ABAC's authorization policy file not passed"),
    ("--authorization-mode=Webhook", "authorization-mode Webhook's authorization config file not passed"),
    ("--authorization-policy-file=/x", "cannot specify --authorization-policy-file without mode ABAC"),
    (
        "--authorization-webhook-config-file=/x",
        "cannot specify --authorization-webhook-config-file without mode Webhook",
    ),
    (
        "--authorization-mode=Webhook --authorization-webhook-config-file=/x --authorization-webhook-version=v2",
        'unsupported webhook authorizer version "v2", supported versions are "v1", "v1beta1"',
    ),
    (
        "--authorization-config=/x --authorization-mode=RBAC",
        "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags",
    ),
    ("--authentication-config=/no/such", "open /no/such: no such file or directory"),
    (
        "--authentication-config=/x --oidc-issuer-url=https://a --oidc-client-id=b",
        "authentication-config file and oidc-* flags are mutually exclusive",
    ),
    (
        "--oidc-issuer-url=https://a",
        "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set",
    ),
    (
        "--oidc-issuer-url=https://a --oidc-client-id=b --oidc-signing-algs=HS256",
        'oidc: unsupported signing alg: "HS256"',
    ),
    (
        "--oidc-issuer-url=http://a --oidc-client-id=b",
        'jwt[0].issuer.url: Invalid value: "http://a": URL scheme must be https',
    ),
    (
        "--authentication-token-webhook-version=v2",
        'unsupported authentication webhook version "v2", supported versions are "v1", "v1beta1"',
    ),
    ("--authorization-config=/no/such", "open /no/such: no such file or directory"),
    ("--token-auth-file=/no/such", "--token-auth-file: no such file: /no/such"),
    ("--service-account-key-file=/no/such", "--service-account-key-file: no such file: /no/such"),
    ("--service-account-signing-key-file=/no", "--service-account-signing-key-file: no such file: /no"),
    ("--service-account-issuer=a --service-account-issuer=a", 'service-account-issuer "a" is already specified'),
    ("--service-account-issuer=", "service-account-issuer should not be an empty string"),
    ("--service-account-issuer=::a", "contained a ':' but was not a valid URL"),
    ("--service-account-jwks-uri=http://a", "service-account-jwks-uri requires https scheme, parsed as: http://a"),
    ("--service-account-max-token-expiration=59m", "must be between 1 hour and 2^32 seconds"),
    ("--enable-admission-plugins=Foo", 'enable-admission-plugins plugin "Foo" is unknown'),
    ("--disable-admission-plugins=Foo", 'disable-admission-plugins plugin "Foo" is unknown'),
    (
        "--enable-admission-plugins=LimitRanger --disable-admission-plugins=LimitRanger",
        '"LimitRanger" in enable-admission-plugins and disable-admission-plugins overlapped',
    ),
    ("--feature-gates=Foo=true", "unrecognized feature gate: Foo"),
    ("--feature-gates=BtreeWatchCache=false", "cannot set feature gate BtreeWatchCache to false, feature is locked"),
    (
        "--feature-gates=kube:GangScheduling=true",
        "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
    ),
    ("--emulated-version=1.37", "emulation version 1.37 is not between [1.33, 1.36.0]"),
    (
        "--emulated-version=1.34 --feature-gates=ConstrainedImpersonation=true",
        "cannot set feature gate ConstrainedImpersonation to true, feature is PreAlpha at emulated version 1.34,"
        " min compatibility version 1.33",
    ),
    ("--emulated-version=foo", 'could not parse "foo" as version'),
    ("--emulated-version=kube=1.36.1", "patch version not allowed, got: kube=1.36.1"),
    ("--emulated-version=bar=1.36", "component not registered: bar"),
    ("--emulated-version=1.36,kube=1.35", "duplicate version flag, kube=1.36 and kube=1.35"),
    ("--min-compatibility-version=1.37", "minCompatibilityVersion version 1.37 is not between [1.33, 1.36]"),
    (
        "--emulated-version=1.34 --min-compatibility-version=1.35",
        "minCompatibilityVersion version 1.35 is not between [1.33, 1.34]",
    ),
    (
        "--emulation-forward-compatible",
        "ServerRunOptions.EmulationForwardCompatible cannot be set to true if the emulation version is the same",
    ),
    (
        "--emulated-version=1.35 --emulation-forward-compatible",
        "ServerRunOptions.EmulationForwardCompatible is not supported by this version",
    ),
    ("--feature-gates=OpenAPIEnums=false", "feature gate OpenAPIEnums=false is not supported by this version"),
    ("--runtime-config=api/all=false", "invalid runtime-config with only api/all=false"),
    ("--runtime-config=a/b/c/d=true", "runtime-config invalid key a/b/c/d"),
    ("--runtime-config=apps/v1=maybe", 'invalid value of apps/v1: maybe, err: strconv.ParseBool: parsing "maybe"'),
    ("--runtime-config=api/beta=1", "invalid value api/beta=1"),
    ("--runtime-config=z.example/v1=true,a.example/v1/things=false", "unknown api groups a.example/v1,z.example/v1"),
    ("--runtime-config=apps/v9=true", "group version apps/v9 that has not been registered"),
    ("--runtime-config=apps/v9/deployments=false", "group version apps/v9 that has not been registered"),
    ("--runtime-config=apps/v1/Deployments=true", 'resource is always lowercase plural, not "Deployments"'),
    ("--logging-format=xml", 'logging-format: Invalid value: "xml": Unsupported log format'),
    ("-v=-1", "v: Invalid value: -1: must not be negative"),
    ("--service-cluster-ip-range=ten", "service-cluster-ip-range is not a valid CIDR: ten"),
    ("--service-cluster-ip-range=10.0.0.0/30", "the service cluster IP range must be at least 8 IP addresses"),
    ("--service-cluster-ip-range=10.0.0.0/16,10.1.0.0/16", "must be of different IP family"),
    ("--service-node-port-range=5-1", '--service-node-port-range "5-1" is not a valid port range'),
    ("--event-ttl=-1s", "--event-ttl can not be negative value"),
    ("--endpoint-reconciler-type=foo", "Reconciler not implemented: foo"),
    ("--apiserver-count=0", "--apiserver-count should be a positive number, but value '0' provided"),
]


@pytest.mark.parametrize(("line", "problem"), PROBLEMS)
def test_what_makes_no_sense_is_refused(line: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptions) as refusal:
        completed(f"--data-dir {tmp_path} {line}").validate()
    assert len(refusal.value.problems) == 1
    assert problem in str(refusal.value)


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(InvalidOptions) as refusal:
        completed("--secure-port=-1 --vmodule=x --event-ttl=-1s").validate()
    assert len(refusal.value.problems) == 3
    assert str(refusal.value).startswith("[--vmodule is not supported by this version, --secure-port -1 must")


def test_a_version_that_is_too_old_to_emulate_is_refused_in_upstreams_words() -> None:
    with pytest.raises(InvalidOptions) as refusal:
        completed("--emulated-version=1.30").validate()
    assert str(refusal.value) == (
        "[emulation version 1.30 is not between [1.33, 1.36.0],"
        " minCompatibilityVersion version 1.33 is not between [1.33, 1.30]]"
    )


def test_a_data_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidOptions, match="is not a directory"):
        completed(f"--data-dir {tmp_path / 'file'}").validate()


@pytest.mark.parametrize(
    "line",
    [
        "--authorization-mode=RBAC --service-cluster-ip-range=10.0.0.0/16 --disable-admission-plugins=ServiceAccount",
        "--service-cluster-ip-range=10.0.0.0/16,fd00::/108",
        "--feature-gates=WatchList=true,AllAlpha=false,BtreeWatchCache=true",
        "--emulated-version=kube=1.36 --min-compatibility-version=v1.35 --emulation-forward-compatible=false",
        "--emulated-version=1.35 --min-compatibility-version=1.33 --show-hidden-metrics-for-version=1.35",
        "--runtime-config=api/all=true,apps/v1/deployments=false,v1=true",
        "--runtime-config=api/beta=true,resource.k8s.io/v1beta1=false,api/legacy=false,/v1/pods=false",
        "--etcd-servers=http://127.0.0.1:2379,http://127.0.0.1:2381 --storage-backend=etcd3",
        "--cors-allowed-origins=^https://example.com$,//localhost:.*",
        "--service-account-issuer=https://a --service-account-issuer=b --api-audiences=api,vault "
        "--service-account-max-token-expiration=24h --service-account-extend-token-expiration=false",
        "--enable-priority-and-fairness=false --profiling=false --watch-cache-sizes=pods#100",
    ],
)
def test_these_command_lines_are_accepted(line: str, tmp_path: Path) -> None:
    completed(f"--data-dir {tmp_path} {line}").validate()


def test_no_flag_is_declared_twice() -> None:
    names = [flag.name for flag in all_flags()]
    assert sorted(set(names)) == sorted(names)


def test_the_help_has_every_section_and_no_unsupported_flag() -> None:
    text = "\n".join(usage_sections(columns=100))
    headings = [line for line in text.splitlines() if line.endswith(" flags:")]
    own = [f"{group[0].upper()}{group[1:]} flags:" for group in TaskGroup]
    assert headings[: len(own)] == own
    assert {"Controllers flags:", "Generic flags:", "Etcd flags:"} <= {*headings[len(own) :]}
    assert "      --secure-port int\n                The port for HTTPS. 0 takes any free one. (default 6443)" in text
    assert "vmodule" not in text


def test_flags_that_kube_apiserver_does_not_have_come_first_with_one_line_each() -> None:
    upstream = json.loads((Path(flags.__file__).parent / "upstream_defaults.json").read_text())
    hidden = {"apiserver-count", "audit-webhook-batch-initial-backoff", "kubelet-port"}  # in no help of upstream's
    known = hidden.union(*upstream.values())
    declared = [flag for section in SECTIONS.values() for flag in flags_of(section)]
    own = {flag.name for flag in declared if flag.name not in known}
    assert {flag.name for flag in declared if flag.group} == own
    shown = re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", "\n".join(usage_sections(columns=100)), re.MULTILINE)
    assert {*shown[: len(own)]} == own
    first = "\n".join(usage_sections(columns=100)).partition("Controllers flags:")[0]
    assert len(re.findall(r"^ {16}\S", first, re.MULTILINE)) == len(own)


def test_the_key_prefix_may_be_given_without_its_slash() -> None:
    assert completed("--etcd-prefix=some/registry/").etcd.prefix == "/some/registry"
