"""Validation of the contents of policies and of CEL expressions: compilation and result type."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from pilothouse.kube.admissionregistration.match_resources import REINVOCATION_POLICIES
from pilothouse.kube.validation.fields import one_of, qualified_name, required_one_of
from pilothouse.kube.validation.internal_structs import TEXT, slice_of, struct
from pilothouse.machinery.cel.admission import AdmissionCompiler, CompilationFailed, Compiled, Declarations
from pilothouse.machinery.cel.program import Program, ProgramFailed
from pilothouse.machinery.field import (
    Errors,
    FieldError,
    Path,
    duplicate,
    internal,
    invalid,
    not_supported,
    required,
    too_many,
)
from pilothouse.machinery.objects import Json, items, name_of, part, text
from pilothouse.machinery.validation.pattern_format import EMPTY_IF_SPECIFIED_ERROR, LINE_BREAKS_ERROR

MAX_MATCH_CONDITIONS = 64
NO_EXPRESSION = "expression is not specified"
Types: TypeAlias = tuple[str, ...]
BOOL: Types = ("bool",)
STRING: Types = ("string",)
STRING_OR_NULL: Types = ("string", "null_type")
APPLY_CONFIGURATION: Types = ("Object",)
JSON_PATCH: Types = ("list(JSONPatch)",)
MAX_AUDIT_ANNOTATIONS = 20
MAX_VALUE_EXPRESSION = 5 * 1024
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_NEWLINES = re.compile(r"[\n\r]")
_NOTHING = "validations or auditAnnotations must contain at least one item"
_shown_annotations = slice_of(struct(Key=TEXT, ValueExpression=TEXT))
_PATCHES: dict[str, tuple[str, Types]] = {
    "ApplyConfiguration": ("applyConfiguration", APPLY_CONFIGURATION),
    "JSONPatch": ("jsonPatch", JSON_PATCH),
}


def validate_content(policy: Json, path: Path) -> Errors:
    spec = part(policy, "spec")
    params, variables = spec.get("paramKind") is not None, items(spec, "variables")
    compiler = AdmissionCompiler(composed=bool(variables))
    for position, variable in enumerate(variables):
        yield from validate_variable(compiler, variable, path.child("variables").index(position), params=params)
    validations, annotations = items(spec, "validations"), items(spec, "auditAnnotations")
    if not validations and not annotations:
        yield required(path.child("validations"), _NOTHING)
        yield required(path.child("auditAnnotations"), _NOTHING)
        return
    for position, validation in enumerate(validations):
        where = path.child("validations").index(position)
        yield from _validate_validation(compiler, validation, where, params=params)
    yield from _validate_annotations(compiler, policy, path.child("auditAnnotations"), params=params)


def _validate_validation(compiler: AdmissionCompiler, validation: Json, path: Path, *, params: bool) -> Errors:
    expression = text(validation, "expression")
    if not expression.strip():
        yield required(path.child("expression"), NO_EXPRESSION)
    else:
        may_use = Declarations(params=params)
        where = path.child("expression")
        yield from validate_expression(compiler, expression, where, declarations=may_use, types=BOOL)
    message_expression_path = path.child("messageExpression")
    expression = text(validation, "messageExpression")
    if expression:
        if not expression.strip():
            yield invalid(message_expression_path, expression, EMPTY_IF_SPECIFIED_ERROR)
        else:
            may_use = Declarations(params=params, authorizer=False)
            yield from validate_expression(
                compiler, expression, message_expression_path, declarations=may_use, types=STRING
            )
    message = text(validation, "message")
    message_path = path.child("message")
    trimmed = message.strip()
    if message and not trimmed:
        yield invalid(message_path, message, EMPTY_IF_SPECIFIED_ERROR)
    elif _NEWLINES.search(trimmed):
        yield invalid(message_path, message, LINE_BREAKS_ERROR)
    if validation.get("reason") is not None:
        yield from one_of(validation["reason"], path.child("reason"), _REASONS)


def _validate_annotations(compiler: AdmissionCompiler, policy: Json, path: Path, *, params: bool) -> Errors:
    annotations = items(policy, "spec", "auditAnnotations")
    if len(annotations) > MAX_AUDIT_ANNOTATIONS:
        reason = f"must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations"
        yield invalid(path, _shown_annotations(annotations), reason)
    seen: set[str] = set()
    for position, annotation in enumerate(annotations):
        where, key = path.index(position), text(annotation, "key")
        if name := name_of(policy):
            yield from qualified_name(f"{name}/{key}", where.child("key"))
        else:
            yield invalid(where.child("key"), key, "requires metadata.name be non-empty")
        value = text(annotation, "valueExpression")
        value_expression_path = where.child("valueExpression")
        trimmed = value.strip()
        if not trimmed:
            yield required(value_expression_path, "valueExpression is not specified")
        elif len(trimmed.encode()) > MAX_VALUE_EXPRESSION:
            yield required(value_expression_path, f"must not exceed {MAX_VALUE_EXPRESSION} bytes in length")
        else:
            may_use = Declarations(params=params)
            for error in validate_expression(
                compiler, trimmed, value_expression_path, declarations=may_use, types=STRING_OR_NULL
            ):
                # The expression is compiled without surrounding white space, and reported with it.
                yield invalid(value_expression_path, value, error.detail)
        if key in seen:
            yield duplicate(where.child("key"), key)
        seen.add(key)


def validate_mutations(spec: Json, path: Path) -> Errors:
    compiler, params = AdmissionCompiler(composed=True), spec.get("paramKind") is not None
    for position, variable in enumerate(items(spec, "variables")):
        yield from validate_variable(compiler, variable, path.child("variables").index(position), params=params)
    if not items(spec, "mutations"):
        yield required(path.child("mutations"), "mutations must contain at least one item")
    for position, mutation in enumerate(items(spec, "mutations")):
        yield from _validate_mutation(compiler, mutation, path.child("mutations").index(position), params=params)
    policy = text(spec, "reinvocationPolicy")
    yield from required_one_of(policy, path.child("reinvocationPolicy"), REINVOCATION_POLICIES)


def _validate_mutation(compiler: AdmissionCompiler, mutation: Json, path: Path, *, params: bool) -> Errors:
    kind = text(mutation, "patchType")
    if not kind:
        yield required(path.child("patchType"))
        return
    if kind not in _PATCHES:
        yield not_supported(path.child("patchType"), kind, sorted(_PATCHES))
        return
    field, types = _PATCHES[kind]
    patch = mutation.get(field)
    if patch is None:
        yield required(path.child(field), f"must be specified when patchType is {kind}")
    else:
        where = path.child(field, "expression")
        expression = text(patch, "expression").strip()
        if not expression:
            yield required(where)
        else:
            may_use = Declarations(params=params, patch_types=True)
            yield from validate_expression(compiler, expression, where, declarations=may_use, types=types)
    for other in (name for name, _ in _PATCHES.values() if name != field):
        if mutation.get(other) is not None:
            yield invalid(path.child(other), f"{{{other}}}", f"must not be specified when patchType is {kind}")


_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*", re.ASCII)
_RESERVED = frozenset(
    {"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"}
    | {"let", "loop", "package", "namespace", "return", "var", "void", "while"}
)


def validate_expression(
    compiler: AdmissionCompiler, expression: str, path: Path, *, declarations: Declarations, types: Types
) -> Errors:
    try:
        compiled = compiler.compile(expression, declarations)
    except CompilationFailed as error:
        yield _failed(expression, path, error)
    else:
        if compiled.type not in types:
            wanted = types[0] if len(types) == 1 else f"one of [{' '.join(types)}]"
            yield invalid(path, expression, f"must evaluate to {wanted} but got {compiled.type}")
        else:
            yield from _validate_program(compiled, expression, path)


def _validate_program(compiled: Compiled, expression: str, path: Path) -> Errors:
    """Constant parts of an expression are evaluated when the expression is written."""
    try:
        Program(compiled.program)
    except ProgramFailed as error:
        yield internal(path, f"program instantiation failed: {error}")


def _failed(expression: str, path: Path, error: CompilationFailed) -> FieldError:
    return invalid(path, expression, f"compilation failed: {error}")


def validate_match_conditions(conditions: Sequence[Json], path: Path, *, params: bool) -> Errors:
    """Validate match conditions. Variables of the policy are not available."""
    if len(conditions) > MAX_MATCH_CONDITIONS:
        yield too_many(path, len(conditions), MAX_MATCH_CONDITIONS)
    seen: set[str] = set()
    for position, condition in enumerate(conditions):
        yield from _validate_match_condition(condition, path.index(position), params=params)
        name = text(condition, "name")
        if name and name in seen:
            yield duplicate(path.index(position).child("name"), name)
        seen.add(name)


def _validate_match_condition(condition: Json, path: Path, *, params: bool) -> Errors:
    expression, name = text(condition, "expression").strip(), text(condition, "name")
    if not expression:
        yield required(path.child("expression"))
    else:
        declarations = Declarations(params=params)
        where = path.child("expression")
        yield from validate_expression(AdmissionCompiler(), expression, where, declarations=declarations, types=BOOL)
    if not name:
        yield required(path.child("name"))
    else:
        yield from qualified_name(name, path.child("name"))


def validate_variable(compiler: AdmissionCompiler, variable: Json, path: Path, *, params: bool) -> Errors:
    """Validate the variable and declare it for later expressions."""
    name, expression = text(variable, "name"), text(variable, "expression")
    if not name.strip():
        yield required(path.child("name"), "name is not specified")
    elif not is_identifier(name):
        yield invalid(path.child("name"), name, "must be a valid CEL identifier")
    if not expression.strip():
        yield required(path.child("expression"), NO_EXPRESSION)
        return
    declarations = Declarations(params=params)
    try:
        if is_identifier(name):
            compiled = compiler.declare_variable(name, expression, declarations)
        else:
            compiled = compiler.compile(expression, declarations)
    except CompilationFailed as error:
        yield _failed(expression, path.child("expression"), error)
    else:
        yield from _validate_program(compiled, expression, path.child("expression"))


def is_identifier(name: str) -> bool:
    return _IDENTIFIER.fullmatch(name) is not None and name not in _RESERVED
