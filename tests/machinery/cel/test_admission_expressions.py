"""CEL expressions of admission: their types, and cel-go's words for those that do not compile."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pilothouse.machinery.cel.admission import AdmissionCompiler, CompilationFailed, Declarations

PLAIN = Declarations()
PATCH = Declarations(patch_types=True)


def type_of(expression: str, declarations: Declarations = PLAIN) -> str:
    return AdmissionCompiler().compile(expression, declarations).type


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("true", "bool"),
        ("1", "int"),
        ("1u", "uint"),
        ("'a'", "string"),
        ("null", "null_type"),
        ("object.spec", "dyn"),
        ("object.spec.replicas <= 5", "bool"),
        ("[1, 2]", "list(int)"),
        ("{'a': [1]}", "map(string, list(int))"),
        ("duration('1s')", "google.protobuf.Duration"),
        ("timestamp('2020-01-01T00:00:00Z')", "google.protobuf.Timestamp"),
        ("object.?spec", "optional_type(dyn)"),
        ("object.?spec.orValue(1) == 1", "bool"),
        ("size(object.items) > 1u", "bool"),
        ("request.userInfo.groups", "list(string)"),
        ("request.options.dryRun", "dyn"),
        ("namespaceObject.metadata.labels['a']", "string"),
        ("authorizer.group('apps').resource('deployments').namespace('x').check('get').allowed()", "bool"),
        ("authorizer.requestResource.check('get').reason()", "string"),
        ("authorizer.path('/healthz').check('get').errored()", "bool"),
        ("url('https://a').getHost()", "string"),
        ("'a-1'.findAll('[0-9]')", "list(string)"),
        ("[3, 1].min()", "int"),
        ("[1, 2].indexOf(2)", "int"),
        ("'abc'.indexOf('b')", "int"),
        ("['b', 'a'].sort()", "list(string)"),
        ("sets.contains([1], [1])", "bool"),
        ("[1].transformList(i, v, v + i)", "list(int)"),
        ("quantity('1Gi').add(quantity('1')).isGreaterThan(quantity('2'))", "bool"),
        ("ip('10.0.0.1')", "net.IP"),
        ("string(cidr('10.0.0.0/8').ip())", "string"),
        ("semver('v1.0', true).major()", "int"),
        ("format.dns1123Label().validate('x').hasValue()", "bool"),
        ("'%s-%d'.format(['a', 1])", "string"),
    ],
)
def test_an_expression_has_the_type_that_go_prints(expression: str, kind: str) -> None:
    assert type_of(expression) == kind


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("object.(", "ERROR: <input>:1:8: Syntax error: no viable alternative at input '.('\n | object.(\n | .......^"),
        ("1.b", "ERROR: <input>:1:2: type 'int' does not support field selection\n | 1.b\n | .^"),
        (
            "1.all(x, x)",
            "ERROR: <input>:1:1: expression of type 'int' cannot be range of a comprehension "
            "(must be list, map, or dynamic)\n | 1.all(x, x)\n | ^",
        ),
        (
            "1.5.startsWith('a')",
            "ERROR: <input>:1:15: found no matching overload for 'startsWith' applied to 'double.(string)'"
            "\n | 1.5.startsWith('a')\n | ..............^",
        ),
        (
            "cel.f(x)",
            "ERROR: <input>:1:1: undeclared reference to 'cel' (in container '')\n | cel.f(x)\n | ^\n"
            "ERROR: <input>:1:6: undeclared reference to 'f' (in container '')\n | cel.f(x)\n | .....^\n"
            "ERROR: <input>:1:7: undeclared reference to 'x' (in container '')\n | cel.f(x)\n | ......^",
        ),
        (
            "JSONPatch{}",
            "ERROR: <input>:1:10: undeclared reference to 'JSONPatch' (in container '')\n | JSONPatch{}\n | .........^",
        ),
        ("nosuch", "ERROR: <input>:1:1: undeclared reference to 'nosuch' (in container '')\n | nosuch\n | ^"),
        ("params.x", "ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params.x\n | ^"),
        (
            "1 == nosuch.b.c",
            "ERROR: <input>:1:6: undeclared reference to 'nosuch' (in container '')\n | 1 == nosuch.b.c\n | .....^",
        ),
        ("request.foo", "ERROR: <input>:1:8: undefined field 'foo'\n | request.foo\n | .......^"),
        (
            "1 + 'a'",
            "ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'\n | 1 + 'a'\n | ..^",
        ),
    ],
)
def test_what_does_not_compile_is_explained_as_cel_go_does(expression: str, message: str) -> None:
    with pytest.raises(CompilationFailed) as failure:
        type_of(expression)
    assert str(failure.value) == message


def test_params_and_authorizer_are_there_only_when_declared() -> None:
    assert type_of("params.x == 1", Declarations(params=True)) == "bool"
    with pytest.raises(CompilationFailed, match="undeclared reference to 'authorizer'"):
        type_of("authorizer.path('/').check('get').allowed()", Declarations(authorizer=False))


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("Object{}", "Object"),
        ("Object{metadata: Object.metadata{labels: {'a': 'b'}}}", "Object"),
        ("Object{spec: Object.spec{template: Object.spec.template{a: 1, b: object.x}}}", "Object"),
        ("[JSONPatch{op: 'add', path: '/a/' + jsonpatch.escapeKey('x/y'), value: {'a': 1}}]", "list(JSONPatch)"),
        ("object.x ? [] : [JSONPatch{op: 'remove', path: '/a'}]", "list(JSONPatch)"),
    ],
)
def test_patches_may_name_any_field_of_the_object(expression: str, kind: str) -> None:
    assert type_of(expression, PATCH) == kind


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("[JSONPatch{op: 1}]", "expected type of field 'op' is 'string' but provided type is 'int'"),
        ("[JSONPatch{nosuch: 1}]", "undefined field 'nosuch'"),
        (
            "Object{spec: Object.spec{a: nosuch}}",
            "<input>:1:29: undeclared reference to 'nosuch' (in container '')\n | Object{spec: Object.spec{a: nosuch}}",
        ),
    ],
)
def test_a_wrong_patch_is_explained_in_its_own_words(expression: str, message: str) -> None:
    with pytest.raises(CompilationFailed) as failure:
        type_of(expression, PATCH)
    assert message in str(failure.value)


def test_a_variable_is_seen_with_its_type_by_what_comes_after_it() -> None:
    compiler = AdmissionCompiler(composed=True)
    compiler.declare_variable("sizes", "[1, 2]", PLAIN)
    compiler.declare_variable("total", "variables.sizes.sum()", PLAIN)
    assert compiler.compile("variables.total", PLAIN).type == "int"
    with pytest.raises(CompilationFailed, match="undefined field 'later'"):
        compiler.compile("variables.later", PLAIN)


def test_a_variable_that_does_not_compile_may_be_anything() -> None:
    compiler = AdmissionCompiler(composed=True)
    with pytest.raises(CompilationFailed):
        compiler.declare_variable("broken", "1 +", PLAIN)
    assert compiler.compile("variables.broken == 'x'", PLAIN).type == "bool"


def test_without_variables_there_is_no_such_name() -> None:
    with pytest.raises(CompilationFailed, match="undeclared reference to 'variables"):
        type_of("variables.x")


def test_the_compiler_is_not_loaded_before_it_is_needed() -> None:
    code = "import sys, pilothouse.kube.groups; sys.exit('cel_expr_python' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
