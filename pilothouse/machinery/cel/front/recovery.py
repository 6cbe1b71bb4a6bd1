"""Syntax errors as ANTLR reports them: all of them, with its error recovery.

cel-go parses with an ANTLR grammar, whose messages depend on the state of the parser. Here the grammar is data, and an
engine walks it with ANTLR's default error strategy: delete or insert one token where that helps, otherwise leave the
rule and skip to a token that can follow it. Only expressions with syntax errors come here.

    a +        mismatched input '<EOF>' expecting {'[', '{', '(', …}
    f(a b)     extraneous input 'b' expecting ')'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Final, TypeAlias

from pilothouse.machinery.cel.front.building import RESERVED, Builder, Dialect
from pilothouse.machinery.cel.front.lexer import (
    BYTES,
    EOF,
    ESC_IDENTIFIER,
    IDENTIFIER,
    NUM_FLOAT,
    NUM_INT,
    NUM_UINT,
    STRING,
    Tokens,
)
from pilothouse.machinery.cel.front.source import NOWHERE, Issue
from pilothouse.machinery.cel.recursion import room_for_recursion

_ORDER: Final = (
    *(EOF, "==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!"),
    *("?", ":", "+", "*", "/", "%", "true", "false", "null", NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES),
    *(IDENTIFIER, ESC_IDENTIFIER),
)
"""Tokens in the order of the grammar, which is their order in messages."""
_RANK: Final = {token: rank for rank, token in enumerate(_ORDER)}
_SYMBOLIC: Final = frozenset((EOF, NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER, ESC_IDENTIFIER))
_END: Final = ""
"""Stands for the end of a rule in sets of tokens."""
_MOST_ERRORS: Final = 100
_MOST_RECOVERIES: Final = 30
_MOST_SKIPPED: Final = 256
_DEEPEST: Final = 250

_Set: TypeAlias = frozenset[str]


class _Part:
    """A part of a rule. `look` are the tokens that can come at its beginning, `after` those that can follow it."""

    look: _Set = frozenset()
    after: _Set = frozenset()

    def first(self) -> _Set:
        raise NotImplementedError

    def settle(self, after: _Set) -> None:
        """Compute `look` and `after`, here and below."""
        self.after = after
        self.look = self.first()


class _Token(_Part):
    def __init__(self, *kinds: str) -> None:
        self.kinds = frozenset(kinds)

    def first(self) -> _Set:
        return self.kinds


class _Rule(_Part):
    def __init__(self, name: str, precedence: int = 0) -> None:
        self.name = name
        self.precedence = precedence

    def first(self) -> _Set:
        return _first_of_rule(self.name)


class _Sequence(_Part):
    def __init__(self, *parts: _Part, precedence: int = 0) -> None:
        self.parts = parts
        self.precedence = precedence
        """Of an operator; 0 for all else."""

    def first(self) -> _Set:
        return self.parts[0].look

    def settle(self, after: _Set) -> None:
        for part in reversed(self.parts):
            part.settle(after)
            after = part.look
        self.look = after


class _Maybe(_Part):
    def __init__(self, inner: _Part) -> None:
        self.inner = inner

    def settle(self, after: _Set) -> None:
        self.inner.settle(after)
        self.after = after
        self.look = self.inner.look | after


class _Loop(_Part):
    """`inner*`, or `inner+` if `once`."""

    def __init__(self, inner: _Part, choose: Callable[[_Engine], bool] | None = None, *, once: bool = False) -> None:
        self.inner = inner
        self.choose = choose
        """Whether another round begins; without it, the next token decides."""
        self.once = once
        self.back: _Set = frozenset()

    def settle(self, after: _Set) -> None:
        self.after = after
        self.inner.settle(frozenset())
        self.back = self.inner.look | after
        self.inner.settle(self.back)
        self.look = self.inner.look if self.once else self.back


class _Choice(_Part):
    def __init__(self, choose: Callable[[_Engine], int], *alternatives: _Part) -> None:
        self.choose = choose
        """Index of the alternative. Raises _NoViableAlternative."""
        self.alternatives = alternatives

    def settle(self, after: _Set) -> None:
        self.after = after
        for each in self.alternatives:
            each.settle(after)
        self.look = frozenset().union(*(each.look for each in self.alternatives))


_EXPRESSION_START: Final = frozenset(
    (*("[", "{", "(", ".", "-", "!", "true", "false", "null"), NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER)
)
_MEMBER_START: Final = _EXPRESSION_START - {"!"}
_LITERAL_START: Final = frozenset((NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, "-", "true", "false", "null"))
_NAME_START: Final = frozenset((IDENTIFIER, ESC_IDENTIFIER))
_FIRST: Final = {
    **dict.fromkeys(("expr", "conditionalOr", "conditionalAnd", "relation", "calc", "unary"), _EXPRESSION_START),
    **dict.fromkeys(("member", "primary"), _MEMBER_START),
    **dict.fromkeys(("optExpr", "listInit", "mapInitializerList"), _EXPRESSION_START | {"?"}),
    **dict.fromkeys(("optField", "fieldInitializerList"), _NAME_START | {"?"}),
    "escapeIdent": _NAME_START,
    "exprList": _EXPRESSION_START,
    "literal": _LITERAL_START,
}


def _first_of_rule(name: str) -> _Set:
    return _FIRST[name]


class _Mismatch(Exception):
    """ANTLR's InputMismatchException."""


class _NoViableAlternative(Exception):
    def __init__(self, start: int, offending: int) -> None:
        self.start = start
        self.offending = offending


class _GiveUp(Exception):
    """Parsing ends; the reason was reported."""


def _choose_unary(engine: _Engine) -> int:
    kind, following = engine.kind(), engine.kind(1)
    if kind == "!":
        return 1
    if kind == "-":
        if following in (NUM_INT, NUM_FLOAT):
            return 0
        if following in _MEMBER_START:
            return 2
        raise engine.stuck(1)
    if kind in _MEMBER_START:
        return 0
    raise engine.stuck(0)


def _another_minus(engine: _Engine) -> bool:
    if engine.kind() == "-":
        if engine.kind(1) not in _MEMBER_START:
            raise engine.stuck(1)
        return True
    if engine.kind() not in _MEMBER_START:
        raise engine.stuck(0)
    return False


def _choose_primary(engine: _Engine) -> int:
    kind = engine.kind()
    if kind in (".", IDENTIFIER):
        return _choose_named(engine)
    if kind in _LITERAL_START:
        return 6
    if kind not in ("(", "[", "{"):
        raise engine.stuck(0)
    return {"(": 2, "[": 3, "{": 4}[kind]


def _choose_named(engine: _Engine) -> int:
    """A variable, a call or an object."""
    ahead = 1 if engine.kind() == "." else 0
    if engine.kind(ahead) != IDENTIFIER:
        raise engine.stuck(ahead)
    ahead += 1
    if engine.kind(ahead) == "(":
        return 1
    while engine.kind(ahead) == "." and engine.kind(ahead + 1) == IDENTIFIER:
        ahead += 2
    return 5 if engine.kind(ahead) == "{" else 0


def _choose_member(engine: _Engine) -> int:
    if engine.kind() == "[":
        return 2
    following = engine.kind(1)
    if following != "?" and following not in _NAME_START:
        raise engine.stuck(1)
    return 1 if following == IDENTIFIER and engine.kind(2) == "(" else 0


def _choose_name(engine: _Engine) -> int:
    if engine.kind() not in _NAME_START:
        raise engine.stuck(0)
    return 0 if engine.kind() == IDENTIFIER else 1


def _choose_literal(engine: _Engine) -> int:
    kind, ahead = engine.kind(), 0
    if kind == "-":
        kind, ahead = engine.kind(1), 1
        if kind not in (NUM_INT, NUM_FLOAT):
            raise engine.stuck(1)
    kinds = (NUM_INT, NUM_UINT, NUM_FLOAT, STRING, BYTES, "true", "false", "null")
    if kind not in kinds:
        raise engine.stuck(ahead)
    return kinds.index(kind)


def _more_items(start: _Set) -> Callable[[_Engine], bool]:
    """A comma that no item follows belongs to the literal, not to its list of items."""
    return lambda engine: engine.kind() == "," and engine.kind(1) in start


def _operator(kinds: Iterable[str], precedence: int) -> Callable[[_Engine], bool]:
    known = frozenset(kinds)
    return lambda engine: engine.kind() in known and engine.precedence <= precedence


_RELATIONS: Final = ("<", "<=", ">=", ">", "==", "!=", "in")


def _choose_calc(engine: _Engine) -> int:
    return 0 if engine.kind() in ("*", "/", "%") else 1


def _goes_on_calculating(engine: _Engine) -> bool:
    kind = engine.kind()
    return (kind in ("*", "/", "%") and engine.precedence <= 2) or (kind in ("+", "-") and engine.precedence <= 1)


@lru_cache(maxsize=1)
def _grammar() -> dict[str, _Part]:
    t, r, seq, maybe, loop, choice = _Token, _Rule, _Sequence, _Maybe, _Loop, _Choice
    rules: dict[str, _Part] = {
        "start": seq(r("expr"), t(EOF)),
        "expr": seq(r("conditionalOr"), maybe(seq(t("?"), r("conditionalOr"), t(":"), r("expr")))),
        "conditionalOr": seq(r("conditionalAnd"), loop(seq(t("||"), r("conditionalAnd")))),
        "conditionalAnd": seq(r("relation"), loop(seq(t("&&"), r("relation")))),
        "relation": seq(
            r("calc"),
            loop(seq(t(*_RELATIONS), r("relation", 2), precedence=1), _operator(_RELATIONS, 1)),
        ),
        "calc": seq(
            r("unary"),
            loop(
                choice(
                    _choose_calc,
                    seq(t("*", "/", "%"), r("calc", 3), precedence=2),
                    seq(t("+", "-"), r("calc", 2), precedence=1),
                ),
                _goes_on_calculating,
            ),
        ),
        "unary": choice(
            _choose_unary,
            seq(r("member")),
            seq(loop(t("!"), once=True), r("member")),
            seq(loop(t("-"), _another_minus, once=True), r("member")),
        ),
        "member": seq(
            r("primary"),
            loop(
                choice(
                    _choose_member,
                    seq(t("."), maybe(t("?")), r("escapeIdent"), precedence=3),
                    seq(t("."), t(IDENTIFIER), t("("), maybe(r("exprList")), t(")"), precedence=2),
                    seq(t("["), maybe(t("?")), r("expr"), t("]"), precedence=1),
                ),
                lambda engine: engine.kind() in (".", "["),
            ),
        ),
        "primary": choice(
            _choose_primary,
            seq(maybe(t(".")), t(IDENTIFIER)),
            seq(maybe(t(".")), t(IDENTIFIER), t("("), maybe(r("exprList")), t(")")),
            seq(t("("), r("expr"), t(")")),
            seq(t("["), maybe(r("listInit")), maybe(t(",")), t("]")),
            seq(t("{"), maybe(r("mapInitializerList")), maybe(t(",")), t("}")),
            seq(
                *(maybe(t(".")), t(IDENTIFIER), loop(seq(t("."), t(IDENTIFIER))), t("{")),
                *(maybe(r("fieldInitializerList")), maybe(t(",")), t("}")),
            ),
            seq(r("literal")),
        ),
        "exprList": seq(r("expr"), loop(seq(t(","), r("expr")))),
        "listInit": seq(r("optExpr"), loop(seq(t(","), r("optExpr")), _more_items(_EXPRESSION_START | {"?"}))),
        "fieldInitializerList": seq(
            *(r("optField"), t(":"), r("expr")),
            loop(seq(t(","), r("optField"), t(":"), r("expr")), _more_items(_NAME_START | {"?"})),
        ),
        "optField": seq(maybe(t("?")), r("escapeIdent")),
        "mapInitializerList": seq(
            *(r("optExpr"), t(":"), r("expr")),
            loop(seq(t(","), r("optExpr"), t(":"), r("expr")), _more_items(_EXPRESSION_START | {"?"})),
        ),
        "escapeIdent": choice(_choose_name, seq(t(IDENTIFIER)), seq(t(ESC_IDENTIFIER))),
        "optExpr": seq(maybe(t("?")), r("expr")),
        "literal": choice(
            _choose_literal,
            seq(maybe(t("-")), t(NUM_INT)),
            seq(t(NUM_UINT)),
            seq(maybe(t("-")), t(NUM_FLOAT)),
            *(seq(t(kind)) for kind in (STRING, BYTES, "true", "false", "null")),
        ),
    }
    for part in rules.values():
        part.settle(frozenset((_END,)))
    return rules


class _Engine:
    """Walks the grammar over the tokens and reports what does not fit."""

    def __init__(self, source: str, tokens: Tokens, builder: Builder) -> None:
        self._source = source
        self.issues = list(tokens.issues)
        self.precedence = 0
        """Lowest precedence of operators that the current rule takes."""
        self._tokens = tokens
        self._builder = builder
        self._next = 0
        self._follows: list[_Set] = []
        """Tokens that can follow the rules under way, innermost last."""
        self._depths: dict[str, int] = {}
        self._state: tuple[int, str] = (0, "")
        self._recovering = False
        self._error_at = -1
        self._error_states: set[tuple[int, str]] = set()
        self._recoveries = 0
        self._expected: _Set = frozenset()
        """Tokens that the current state expects, with _END if its rule may end there."""

    def kind(self, ahead: int = 0) -> str:
        kinds = self._tokens.kinds
        return kinds[min(self._next + ahead, len(kinds) - 1)]

    def stuck(self, ahead: int) -> _NoViableAlternative:
        last = len(self._tokens.kinds) - 1
        return _NoViableAlternative(min(self._next, last), min(self._next + ahead, last))

    def run(self) -> None:
        with suppress(_GiveUp):
            self._rule("start", 0)

    def _enter(self, name: str) -> None:
        depth = self._depths[name] = self._depths.get(name, 0) + 1
        if depth > _DEEPEST:
            self.issues.append(Issue(NOWHERE, f"expression recursion limit exceeded: {_DEEPEST}"))
            raise _GiveUp

    def _rule(self, name: str, precedence: int) -> None:
        outer_precedence, depth = self.precedence, self._depths.get(name, 0)
        self.precedence = precedence
        self._enter(name)
        try:
            self._walk(_grammar()[name], name)
        except (_Mismatch, _NoViableAlternative) as error:
            if name == "escapeIdent":
                self._builder.broken(self._tokens.positions[self._next], "unsupported ident kind")
            self._report(error)
            self._recover()
        self.precedence = outer_precedence
        self._depths[name] = depth

    def _at(self, part: _Part, expected: _Set, variant: str = "") -> None:
        self._state = (id(part), variant)
        self._expected = expected

    def _walk(self, part: _Part, rule: str) -> None:
        match part:
            case _Sequence():
                if part.precedence:
                    self._enter(rule)
                for each in part.parts:
                    self._walk(each, rule)
            case _Token():
                self._at(part, part.look)
                self._match(part)
            case _Rule():
                self._at(part, part.look)
                state = self._state
                self._follows.append(part.after)
                self._rule(part.name, part.precedence)
                self._follows.pop()
                self._state = state
            case _Maybe():
                self._at(part, part.look)
                self._sync_block()
                if self.kind() in part.inner.look:
                    self._walk(part.inner, rule)
            case _Loop():
                self._loop(part, rule)
            case _Choice():
                self._at(part, part.look)
                self._sync_block()
                self._walk(part.alternatives[part.choose(self)], rule)

    def _loop(self, part: _Loop, rule: str) -> None:
        self._at(part, part.look)
        self._sync_block()
        goes_on = part.once or self._begins(part)
        while goes_on:
            self._walk(part.inner, rule)
            self._at(part, part.back, "back")
            self._sync_loop()
            goes_on = self._begins(part)

    def _begins(self, part: _Loop) -> bool:
        return part.choose(self) if part.choose is not None else self.kind() in part.inner.look

    def _match(self, part: _Token) -> None:
        if self.kind() in part.kinds:
            self._note_match(part)
            self._consume()
            return
        self._count_recovery()
        if self._delete_token():
            self._consume()
        elif self.kind() in self._in_context(part.after):
            self._report_at(self._next, f"missing {_shown(self._all_expected())} at {self._display(self._next)}")
        else:
            raise _Mismatch

    def _note_match(self, part: _Token) -> None:
        self._end_recovery()
        index, kind = self._next, self.kind()
        text, position = self._tokens.texts[index], self._tokens.positions[index]
        if kind == IDENTIFIER and text in RESERVED and self._is_variable(index):
            self._builder.broken(position, f"reserved identifier: {text}")
        elif kind == ESC_IDENTIFIER:
            self._builder.broken(position, "unsupported syntax: '`'")
        elif kind in (NUM_INT, NUM_UINT, NUM_FLOAT, STRING, BYTES):
            negative = index > 0 and self._tokens.kinds[index - 1] == "-"
            self._builder.literal(kind, text, position, negative=negative)

    def _is_variable(self, index: int) -> bool:
        """Whether the name is neither a field nor part of a type's name."""
        selected = index > 0 and self._tokens.kinds[index - 1] in (".", "?")
        return not selected and _choose_named(self) != 5

    def _consume(self) -> None:
        if self.kind() != EOF:
            self._next += 1

    def _end_recovery(self) -> None:
        self._recovering = False
        self._error_states = set()
        self._error_at = -1

    def _all_expected(self) -> _Set:
        """Tokens that the current state and, if its rule may end there, the rules around it expect."""
        return self._in_context(self._expected)

    def _in_context(self, expected: _Set) -> _Set:
        found, depth = set(expected), len(self._follows)
        while _END in found and depth > 0:
            depth -= 1
            found.remove(_END)
            found |= self._follows[depth]
        if _END in found:
            found.remove(_END)
            found.add(EOF)
        return frozenset(found)

    def _sync_block(self) -> None:
        if self._fits():
            return
        if not self._delete_token():
            raise _Mismatch

    def _sync_loop(self) -> None:
        if self._fits():
            return
        self._report_unwanted()
        self._skip_to(self._all_expected() | self._recovery_set(), limited=False)

    def _fits(self) -> bool:
        return self._recovering or _END in self._expected or self.kind() in self._expected

    def _delete_token(self) -> bool:
        """Drop the next token if the token after it is expected."""
        if self.kind(1) not in self._all_expected():
            return False
        self._report_unwanted()
        self._consume()
        self._end_recovery()
        return True

    def _report_unwanted(self) -> None:
        message = f"extraneous input {self._display(self._next)} expecting {_shown(self._all_expected())}"
        self._report_at(self._next, message)

    def _report(self, error: _Mismatch | _NoViableAlternative) -> None:
        if isinstance(error, _Mismatch):
            expecting = _shown(self._all_expected())
            self._report_at(self._next, f"mismatched input {self._display(self._next)} expecting {expecting}")
            return
        text = self._between(error.start, error.offending)
        offending = self._tokens.texts[error.offending]
        message = f"no viable alternative at input {text}"
        if offending in ("true", "false", "null") and len(text) == len(offending) + 3:
            message = f"mismatched input '{offending}' expecting IDENTIFIER"
        self._report_at(error.offending, message)

    def _between(self, start: int, end: int) -> str:
        tokens = self._tokens
        if tokens.kinds[start] == EOF:
            return "'<EOF>'"
        stop = tokens.positions[end] + (0 if tokens.kinds[end] == EOF else len(tokens.texts[end]))
        return _quoted(tokens.text_between(self._source, tokens.positions[start], stop))

    def _report_at(self, index: int, message: str) -> None:
        if self._recovering:
            return
        self._recovering = True
        self._notify(index, message)

    def _notify(self, index: int, message: str) -> None:
        position = self._tokens.positions[index]
        if len(self.issues) >= _MOST_ERRORS:
            self.issues.append(Issue(position, f"Syntax error: More than {_MOST_ERRORS} syntax errors"))
            raise _GiveUp
        self.issues.append(Issue(position, f"Syntax error: {message}"))

    def _display(self, index: int) -> str:
        return _quoted(self._tokens.texts[index])

    def _count_recovery(self) -> None:
        if self._recoveries == _MOST_RECOVERIES:
            self._notify(self._next, f"error recovery attempt limit exceeded: {_MOST_RECOVERIES}")
            raise _GiveUp
        self._recoveries += 1

    def _recover(self) -> None:
        """Skip to a token that can follow one of the rules under way."""
        self._count_recovery()
        if self._error_at == self._next and self._state in self._error_states:
            self._consume()
        self._error_at = self._next
        self._error_states.add(self._state)
        self._skip_to(self._recovery_set(), limited=True)

    def _recovery_set(self) -> _Set:
        return frozenset().union(*self._follows) - {_END}

    def _skip_to(self, wanted: _Set, *, limited: bool) -> None:
        skipped = 0
        while self.kind() != EOF and self.kind() not in wanted:
            if limited and skipped >= _MOST_SKIPPED:
                message = f"error recovery token lookahead limit exceeded: {_MOST_SKIPPED}"
                self.issues.append(Issue(NOWHERE, message))
                raise _GiveUp
            skipped += 1
            self._consume()


def _quoted(text: str) -> str:
    return "'" + text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r") + "'"


def _shown(expected: _Set) -> str:
    names = [kind if kind in _SYMBOLIC else f"'{kind}'" for kind in sorted(expected, key=_RANK.__getitem__)]
    return names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"


def parse_with_recovery(source: str, tokens: Tokens, dialect: Dialect) -> list[Issue]:
    """Return all errors of an expression with syntax errors."""
    builder = Builder(dialect)
    engine = _Engine(source, tokens, builder)
    with room_for_recursion():
        engine.run()
    return [*engine.issues, *builder.issues]
