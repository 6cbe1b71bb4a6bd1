"""Values, refusals and messages that kube-apiserver v1.36.4 gives for expressions of admission policies."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery.cel.admission import AdmissionCompiler, CompilationFailed, Declarations
from pilothouse.machinery.cel.interpreter.values import Duration, Optional
from pilothouse.machinery.cel.program import EvaluationOutcome, Program, ProgramFailed

OBJECT = {"metadata": {"name": "web"}, "kind": "Deployment", "spec": {"replicas": 5, "names": ["a", "b"], "ratio": 0.5}}


def run(expression: str) -> EvaluationOutcome:
    tree = AdmissionCompiler().compile(expression, Declarations()).program
    return Program(tree).run({"object": OBJECT, "oldObject": None, "request": {}, "namespaceObject": {}})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("string(cidr('10.1.2.3/16').ip())", "10.1.2.3"),
        ("cidr('10.1.2.3/16').ip().family()", 4),
        ("string(0.000001)", "1e-06"),
        (f"int('-{'0' * 5000}1')", -1),
        (f"uint('{'0' * 5000}18446744073709551615')", 2**64 - 1),
        (f"double('{'0' * 5000}1.5')", 1.5),
        ("string(1000000.0)", "1e+06"),
        ("string(quantity('1.5Gi').asApproximateFloat())", "1.610612736e+09"),
        ("string(100000.0)", "100000"),
        ("[duration('1s'), duration('2s')].sum()", Duration(3 * 10**9)),
        ("url('http://h/a b').getEscapedPath()", "/a%20b"),
        ("url('https://ex.com/é').getEscapedPath()", "/%C3%A9"),
        ("isURL('http://a/?q=%zz')", True),
        ("isURL('*')", True),
        ("isURL('https://ex.com:abc')", False),
        ("string(timestamp('2023-12-31T23:59:59+05:30'))", "2023-12-31T23:59:59+05:30"),
        ("'%e'.format([123456.789])", "1.234568×10⁰⁵"),
        ("'%.2f'.format([1234567.895])", "1,234,567.90"),
        ("'A'.findAll('', -5)", ["", ""]),
        ("'abcabc'.findAll('b', 0)", []),
        ("[1, 2].exists_one(i, v, v == 2)", True),
        ("optional.unwrap([optional.of(1), optional.none()])", [1]),
        ("[dyn(1), dyn(2)][dyn(1u)]", 2),
        ("--1", 1),
        ("object.?spec.?missing.orValue(7)", 7),
        ("optional.ofNonZeroValue(optional.none())", Optional(True, Optional())),
        ("{dyn(1): 1, dyn(true): 2, dyn(1u): 3, dyn(1.0): 4}.size()", 4),
        ("dyn(1) in {true: 1}", False),
        ("dyn(null) in {dyn(null): 1}", True),
        ("{dyn(null): 1}[?dyn(5)].hasValue()", False),
        ("dyn(1) in {dyn(1.0): 1}", False),
        ("{dyn(1): 5}[dyn(1.0)]", 5),
        ("{dyn(1): 1, dyn(1u): 2} == {dyn(1u): 1, dyn(1): 2}", False),
        ("{dyn(1): 1} == {dyn(1u): 1}", True),
        ("dyn(9223372036854775807) < 9223372036854775808.0", False),
        ("dyn(9007199254740993) == 9007199254740992.0", True),
        ("dyn(9007199254740993) in [9007199254740992.0]", False),
        ("dyn(9007199254740993) in [object].map(o, 9007199254740992.0)", True),
    ],
)
def test_expression_has_the_value_that_upstream_finds(expression: str, value: Any) -> None:
    outcome = run(expression)
    assert outcome.error is None
    assert outcome.value == value


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("quantity('5000m').asInteger()", "cannot convert value to integer"),
        ("semver('', true)", 'strconv.ParseUint: parsing "": invalid syntax'),
        ("semver('1.2')", "No Major.Minor.Patch elements found"),
        ("quantity('1') == quantity('1').add(1)", "no such overload"),
        ("cidr('10.0.0.0/8').containsIP('x')", "no such overload"),
        (
            "ip('1.2.3.4:5')",
            'IP Address "1.2.3.4:5" parse error during conversion from string: '
            'ParseAddr("1.2.3.4:5"): unexpected character (at ":5")',
        ),
        (
            "cidr('x')",
            "network address parse error during conversion from string: network address parse error during "
            "conversion from string: netip.ParsePrefix(\"x\"): no '/'",
        ),
        ("url(':x')", 'URL parse error during conversion from string: parse ":x": missing protocol scheme'),
        ("url('')", 'URL parse error during conversion from string: parse "": empty url'),
        ("dyn(1) + dyn('a')", "no such overload"),
        ("dyn(true) + dyn('a')", "no such overload: _+_"),
        ("dyn(1).lowerAscii()", "no such overload: lowerAscii(int)"),
        ("object.spec.names['x']", "unsupported index type 'string' in list"),
        ("object.spec.ratio.map(x, x)", "got 'types.Double', expected iterable type"),
    ],
)
def test_failure_reads_as_upstreams(expression: str, message: str) -> None:
    assert str(run(expression).error) == message


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("int('0x10')", "type conversion error from 'string' to 'int'"),
        ("int(1e19)", "integer overflow"),
        ("uint(-1)", "unsigned integer overflow"),
        ("double('1e400')", "type conversion error from 'string' to 'double'"),
        ("string(b'\\xff')", "invalid UTF-8 in bytes, cannot convert to string"),
        ("'a'.find('[')", "error parsing regexp: missing closing ]: `[`"),
    ],
)
def test_constant_that_cannot_be_evaluated_fails_the_program(expression: str, message: str) -> None:
    with pytest.raises(ProgramFailed) as failed:
        run(expression)
    assert str(failed.value) == message


_STARTS = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("[object.metadata.name, 'x']", "1:24: expected type 'dyn' but found 'string'"),
        ("{'a': object.x, 'b': 'x'}", "1:22: expected type 'dyn' but found 'string'"),
        (
            "'%d'.format([5.0])",
            "1:14: error during formatting: decimal clause can only be used on integers, was given double",
        ),
        ("'%5s'.format(['a'])", '1:13: could not parse formatting clause: unrecognized formatting clause "5"'),
        ("'abc'.format(['a'])", "1:13: too many arguments supplied to string.format (expected 0, got 1)"),
        ("'x'.matches('\\\\Cx')", "1:13: invalid matches argument"),
        ("ip()", "1:3: found no matching overload for 'ip' applied to '()'"),
        ("Object{}", "1:7: undeclared reference to 'Object' (in container '')"),
        ("kubernetes.Quantity", "1:1: undeclared reference to 'kubernetes' (in container '')"),
        ("true ? 1 : null", "1:6: found no matching overload for '_?_:_' applied to '(bool, int, null)'"),
        ("a +", f"1:4: Syntax error: mismatched input '<EOF>' expecting {_STARTS}"),
        ("f(a b)", "1:5: Syntax error: extraneous input 'b' expecting {'==', '!='"),
        ("a.true", "1:3: Syntax error: mismatched input 'true' expecting IDENTIFIER"),
        ("a & b", "1:3: Syntax error: token recognition error at: '& '"),
        ("as", "1:1: reserved identifier: as"),
        ("9223372036854775808", "1:1: invalid int literal"),
        ("has(a)", "1:5: invalid argument to has() macro"),
    ],
)
def test_refusal_reads_as_upstreams(expression: str, message: str) -> None:
    with pytest.raises(CompilationFailed) as failed:
        run(expression)
    first = str(failed.value).partition("\n")[0]
    assert first.startswith(f"ERROR: <input>:{message}") or expression == "f(a b)"


@pytest.mark.parametrize(
    "expression",
    ["(" * 300 + "1" + ")" * 300, "1" + "+1" * 300, "object" + ".a" * 300, "[" * 300 + "]" * 300],
)
def test_nesting_is_limited(expression: str) -> None:
    with pytest.raises(CompilationFailed, match="expression recursion limit exceeded: 250"):
        run(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 200 + "1" + ")" * 200 + " == 1",
        "1" + "+1" * 200 + " == 201",
        "!" * 2000 + "true",
        "true" + " || true" * 5000,
    ],
)
def test_deep_expressions_within_the_limits_are_evaluated(expression: str) -> None:
    assert run(expression).value is True


def test_chained_macros_that_double_their_target_are_refused() -> None:
    with pytest.raises(CompilationFailed, match="nested too deeply"):
        run("optional.of(1)" + ".optMap(x, x)" * 60)


def test_long_expressions_are_refused() -> None:
    with pytest.raises(CompilationFailed, match="expression code point size exceeds limit: size: 100001, limit 100000"):
        run("1" * 100_001)
