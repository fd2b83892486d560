"""The small language in which figures name their values, and in which claims say what they measure.

It looks like Python: numbers, names, ``a.b``, ``a['b-c']``, arithmetic, comparisons, ``and``, ``not``,
lists, and calls of the functions below; a field may be a number (``percentile_ns.99``), and a text that
is compared with a number is a quantity (``"64KiB"``). A value of a figure is a function:
``write(scheduler="VIOS")`` is its `Series` over the axes that were not chosen. Arithmetic and
comparisons go cell by cell; a missing number makes the outcome missing.
"""

from __future__ import annotations

import ast
import difflib
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ftlab._core import UserError
from ftlab.studies.series import Number, Series, combine, values_of
from ftlab.units import quantity

MOST_CHARACTERS = 4096
"""The maximum length of an expression, which bounds the work to evaluate it and the size of its numbers."""

MOST_NESTING = 50
"""The maximum depth to which parts of an expression may be nested."""


def _change(new: Any, old: Any) -> Any:
    """Returns by how many per cent ``new`` differs from ``old``."""
    return combine(lambda a, b: (a / b - 1) * 100, new, old)


def _mean(*of: Any) -> Number:
    values = values_of(of)
    return math.fsum(values) / len(values) if values else None


def _extreme(pick: Callable[[Iterable[Any]], Any]) -> Callable[..., Number]:
    return lambda *of: pick(values) if (values := values_of(of)) else None


def _where(pick: Callable[..., Any]) -> Callable[[Series], str | None]:
    """Returns a function that finds the label of the value that ``pick``, `min` or `max`, chooses from a
    series.
    """

    def find(of: Series) -> str | None:
        known = {key: value for key, value in of.cells.items() if value is not None}
        return ", ".join(pick(known, key=lambda key: known[key])) if known else None

    return find


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(values)
    last = {value: at for at, value in enumerate(order)}
    first = {value: at for at, value in reversed(list(enumerate(order)))}
    return [(first[value] + last[value]) / 2 for value in values]


def _rank_correlation(left: Series, right: Series) -> Number:
    """Returns Spearman's rank correlation, which is 1 if each series always grows when the other does."""
    keys = [key for key in left.cells if left.cells[key] is not None and right.cells.get(key) is not None]
    first, second = (_ranks([side.cells[key] for key in keys]) for side in (left, right))
    if len(set(first)) < 2 or len(set(second)) < 2:
        return None
    middle = (len(keys) - 1) / 2
    product = math.fsum((a - middle) * (b - middle) for a, b in zip(first, second, strict=True))
    spread = [math.fsum((a - middle) ** 2 for a in ranks) for ranks in (first, second)]
    return product / math.sqrt(spread[0] * spread[1])


def _steps(of: Series) -> Series:
    """Returns the differences between neighbouring values along the only axis, in the axis's order."""
    (axis,) = of.axes
    keys = list(of.cells)
    pairs = itertools.pairwise(keys)
    return Series((axis,), {new: combine(operator.sub, of.cells[new], of.cells[old]) for old, new in pairs})


def _exponent(upper: Series, lower: Series, axis: str) -> Series:
    """Returns the exponent of the power of ``lower`` with which ``upper`` grows along an axis: a log-log
    slope.
    """

    def fit(pairs: Sequence[tuple[Any, Any]]) -> Number:
        logs = [(math.log(a), math.log(b)) for a, b in pairs if a and b and a > 0 and b > 0]
        x0, y0 = _mean([x for _, x in logs]), _mean([y for y, _ in logs])
        if x0 is None or y0 is None:
            return None
        spread = math.fsum((x - x0) ** 2 for _, x in logs)
        return math.fsum((x - x0) * (y - y0) for y, x in logs) / spread if spread else None

    pairs = Series(upper.axes, {key: (value, lower.cells.get(key)) for key, value in upper.cells.items()})
    return _along(pairs, axis, fit)


def _along(of: Series, axis: str, function: Callable[..., Any]) -> Series:
    place = of.axes.index(axis)
    groups: dict[tuple[str, ...], list[Any]] = {}
    for key, value in of.cells.items():
        groups.setdefault(key[:place] + key[place + 1 :], []).append(value)
    kept = of.axes[:place] + of.axes[place + 1 :]
    return Series(kept, {key: function(values) for key, values in groups.items()})


def _distribution(summary: Mapping[str, Any]) -> list[dict[str, float]]:
    """Returns the points of a latency's cumulative distribution: its percentiles and its greatest value."""
    points = [
        {"probability": float(key) / 100, "value_ns": value}
        for key, value in summary["percentile_ns"].items()
        if value is not None
    ]
    last = [{"probability": 1.0, "value_ns": summary["max_ns"]}] if summary["max_ns"] is not None else []
    return points + last


def _geometric(*of: Any) -> Number:
    """Returns the geometric mean of positive numbers."""
    numbers = values_of(of)
    if not numbers or any(number <= 0 for number in numbers):
        return None
    return math.exp(math.fsum(math.log(number) for number in numbers) / len(numbers))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "change": _change,
    "mean": _mean,
    "geometric": _geometric,
    "least": _extreme(min),
    "greatest": _extreme(max),
    "total": lambda *of: math.fsum(values_of(of)),
    "count": lambda of: sum(bool(value) for value in values_of(of)),
    "every": lambda of: bool(values_of(of)) and all(values_of(of)),
    "share": lambda of: (
        100 * _mean(*[float(value) for value in values_of(of)])  # type: ignore[operator]
        if values_of(of)
        else None
    ),
    "where_least": _where(min),
    "where_greatest": _where(max),
    "rank_correlation": _rank_correlation,
    "steps": _steps,
    "exponent": _exponent,
    "mean_over": lambda of, axis: _along(of, axis, _mean),
    "least_over": lambda of, axis: _along(of, axis, _extreme(min)),
    "greatest_over": lambda of, axis: _along(of, axis, _extreme(max)),
    "distribution": _distribution,
    "absolute": lambda of: combine(lambda a, _: abs(a), of, 0),
}
"""The functions that an expression can call."""


def _of_numbers(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Makes an operator refuse operands other than numbers; Python would repeat or join strings and lists."""

    def apply(left: Any, right: Any) -> Any:
        for side in (left, right):
            if not isinstance(side, (int, float)):
                raise UserError(f"{type(side).__name__} where a number is expected")
        return function(left, right)

    return apply


def _ordering(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Makes a comparison take quantities written as strings by value: "9KiB" is less than "16KiB"."""

    def apply(left: Any, right: Any) -> Any:
        return function(_comparable(left), _comparable(right))

    return apply


def _comparable(side: Any) -> Any:
    if not isinstance(side, str):
        return side
    found = quantity(side)
    if found is None:
        raise UserError(f"{side!r} is not a quantity, so nothing is more or less")
    return found


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, str) != isinstance(right, str):
        text, other = (left, right) if isinstance(left, str) else (right, left)
        return bool(quantity(text) == other)
    return bool(left == right)


_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: _of_numbers(operator.add),
    ast.Sub: _of_numbers(operator.sub),
    ast.Mult: _of_numbers(operator.mul),
    ast.Div: _of_numbers(operator.truediv),
    ast.Lt: _ordering(operator.lt),
    ast.LtE: _ordering(operator.le),
    ast.Gt: _ordering(operator.gt),
    ast.GtE: _ordering(operator.ge),
    ast.Eq: _same,
    ast.NotEq: lambda a, b: not _same(a, b),
    ast.BitAnd: lambda a, b: bool(a) and bool(b),
    ast.BitOr: lambda a, b: bool(a) or bool(b),
}


class Expression:
    """A parsed expression."""

    def __init__(self, text: str, where: str) -> None:
        """Parses the expression; ``where`` is its place, for messages.

        Raises:
            UserError: the text does not parse, is too long or is nested too deeply.
        """
        self.text = text.strip()
        self.where = where
        if len(self.text) > MOST_CHARACTERS:
            raise self._fail(f"{len(self.text):,} characters are more than {MOST_CHARACTERS:,}")
        try:
            self._tree = ast.parse(_with_numbers_as_fields(self.text), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise self._fail(_first_line(error)) from None
        if _depth(self._tree) > MOST_NESTING:
            raise self._fail(f"nested more than {MOST_NESTING} deep")

    def __call__(self, names: Mapping[str, Any]) -> Any:
        """Evaluates the expression with these ``names``.

        Raises:
            UserError: a name is unknown, or a part has no meaning here.
        """
        return self._evaluated(self._tree, names)

    def number(self, names: Mapping[str, Any]) -> Number:
        """Returns the expression's value as a number, None if it is missing or not finite.

        Raises:
            UserError: the expression cannot be evaluated (see `__call__`), or its value is not a number.
        """
        value = self(names)
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            return None
        if not isinstance(value, (int, float)):
            raise self._fail(f"came out as {type(value).__name__}, which is not a number")
        try:
            return float(value)
        except OverflowError as error:
            raise self._fail(str(error)) from None

    def counted(self, names: Mapping[str, Any]) -> tuple[int, int] | None:
        """Returns, for ``every(series)``, how many values are true and how many there are; None for any other
        expression.
        """
        match self._tree:
            case ast.Call(func=ast.Name(id="every"), args=[inner]):
                values = values_of(self._evaluated(inner, names))
                return sum(map(bool, values)), len(values)
        return None

    def spread(self, names: Mapping[str, Any]) -> tuple[float, float] | None:
        """Returns the least and the greatest change in the first ``mean(change(...))`` of the expression."""
        for node in ast.walk(self._tree):
            match node:
                case ast.Call(func=ast.Name(id="mean"), args=[ast.Call(func=ast.Name(id="change")) as inner]):
                    values = values_of(self._evaluated(inner, names))
                    return (min(values), max(values)) if len(values) > 1 else None
        return None

    def sides(self, names: Mapping[str, Any]) -> list[Any]:
        """Returns both sides of a comparison, with quantities as numbers; empty for any other expression."""
        match self._tree:
            case ast.Compare(left=left, comparators=[right]):
                found = [self._evaluated(side, names) for side in (left, right)]
                return [quantity(side) if isinstance(side, str) else side for side in found]
        return []

    def used(self) -> set[str]:
        """Returns the names in the expression."""
        return {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}

    def _fail(self, why: str) -> UserError:
        shown = self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}..."
        return UserError(f"{self.where}: {shown!r}: {why}")

    def _evaluated(self, node: ast.AST, names: Mapping[str, Any]) -> Any:
        try:
            return self._value(node, names)
        except UserError as error:
            raise self._fail(str(error)) from None
        except Exception as error:
            # Any exception that Python raises means that the expression does not fit what was measured.
            raise self._fail(f"{type(error).__name__}: {_first_line(error)}") from None

    def _value(self, node: ast.AST, names: Mapping[str, Any]) -> Any:
        match node:
            case ast.Constant(value=value) if isinstance(value, (int, float, str, bool)):
                return value
            case ast.Name(id=name):
                if name in names:
                    return names[name]
                if name in FUNCTIONS:
                    return FUNCTIONS[name]
                raise UserError(f"no value {name!r}{listed(name, names)}")
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return [self._value(part, names) for part in parts]
            case ast.Attribute(value=inner, attr=field):
                return _field(self._value(inner, names), field)
            case ast.Subscript(value=inner, slice=ast.Constant(value=field)):
                return _field(self._value(inner, names), field)
            case ast.Call(func=function, args=arguments, keywords=keywords):
                given = [self._value(each, names) for each in arguments]
                named = {}
                for each in keywords:
                    if each.arg is None:
                        raise UserError("'**' is not part of the language")
                    named[each.arg] = self._value(each.value, names)
                return self._value(function, names)(*given, **named)
            case _:
                return self._operation(node, names)

    def _operation(self, node: ast.AST, names: Mapping[str, Any]) -> Any:
        match node:
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                function = _OPERATORS[type(op)]
                return combine(function, self._value(left, names), self._value(right, names))
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return combine(operator.sub, 0, self._value(inner, names))
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return combine(lambda a, _: not a, self._value(inner, names), 0)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
                function = _OPERATORS[type(op)]
                return combine(function, self._value(left, names), self._value(right, names))
            case ast.BoolOp(op=op, values=parts):
                values = [self._value(part, names) for part in parts]
                if any(isinstance(value, Series) for value in values):
                    raise UserError("'and' and 'or' are for single truths; use & and | cell by cell")
                return all(values) if isinstance(op, ast.And) else any(values)
            case _:
                raise UserError(f"{ast.unparse(node)!r} is not part of the language")


_SHOWN = 200

_TEXT_OR_NUMBER = re.compile(r"""("[^"]*"|'[^']*')|(?<=[A-Za-z_])\.([0-9]+(?:\.[0-9]+)?)""")


def _with_numbers_as_fields(text: str) -> str:
    """Rewrites fields such as ``percentile_ns.99.9`` so that Python can parse them, except in quoted text."""
    return _TEXT_OR_NUMBER.sub(lambda found: found[1] or f"['{found[2]}']", text)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _depth(tree: ast.AST) -> int:
    """Returns the depth of a tree, without recursion."""
    depth, level = 0, [tree]
    while level:
        depth, level = depth + 1, [child for node in level for child in ast.iter_child_nodes(node)]
    return depth


def listed(name: object, there: Iterable[object]) -> str:
    """Returns text that suggests what was meant by an unknown name, and lists the names that exist."""
    names = [str(each) for each in there]
    near = difflib.get_close_matches(str(name), names, n=1)
    meant = f"; did you mean {near[0]}? There are" if near else "; there are"
    return f"{meant}: {', '.join(names)}"


def _field(of: Any, field: Any) -> Any:
    if isinstance(of, Mapping):
        if field not in of and re.fullmatch(r"[0-9.]+", str(field)):
            # A percentile is written as it is named in results.
            field = f"{float(field):.6f}"
        if field not in of and not of:
            return None
        if field not in of:
            raise UserError(f"no field {field!r}{listed(field, of)}")
        return of[field]
    if isinstance(of, list) and isinstance(field, int):
        return of[field]
    if of is None:
        return None
    raise UserError(f"{field!r} of something that has no fields")
