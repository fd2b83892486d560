"""Policies of your own in Python: a host scheduler, a victim policy, a placement, a mapping cache's
replacement.

A class can be used in place of a name, in a call or on the command line::

    class Oldest(ftlab.HostScheduler):
        def __init__(self): self.queue = collections.deque()
        def admit(self, request): self.queue.append(request.id)
        def choose(self): return self.queue.popleft() if self.queue else None
        def remove(self, id): self.queue.remove(id)

    ftlab.compare("map-plus", {"host.scheduler": ["noop", Oldest]}, trace="a.csv")

    ftlab run map-plus --trace a.csv --set host.scheduler=python:oldest.py:Oldest

A configuration file or a study may name one too, once `allow_python` has been called (``--allow-python``):
what somebody else wrote runs no code unasked.

Parameters of ``__init__`` that have defaults can be given other values behind the class, in the call with
`using`::

    ftlab run map-plus --trace a.csv --set host.scheduler=python:mine.py:Deadline:read_expire=10ms:batch=8
    ftlab.run("map-plus", trace="a.csv", host__scheduler=Deadline.using(read_expire="10ms", batch=8))

A new object is made at the start of each run. An exception in one of its methods ends the run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
import threading
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from ftlab import _core
from ftlab._core import UserError
from ftlab.parameters import PREFIX, WRITE, check, parametrised, parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Self

    import numpy as np
    from numpy.typing import NDArray

    from ftlab._core import Request

_LACKS = "the class has to have this method"
_NAMED = re.compile(r"""(["'])(python:.+?)\1""")


class Stat(NamedTuple):
    """A figure that a policy itself reports; the result has it as ``own.PART.NAME``."""

    name: str
    """The figure's name: lower-case letters, digits and underscores."""
    value: float
    """The figure's value."""
    unit: str
    """The figure's unit in the plural (``requests``, ``ns``); empty for a ratio."""
    doc: str
    """A line that says what the figure is."""


class _Policy:
    """The base class of all policies."""

    @classmethod
    def using(cls, **parameters: str | float) -> type[Self]:
        """Returns this class with values for parameters of its ``__init__``, to be used in place of a name.

        A text that is a quantity becomes a number: a time in nanoseconds (``"10ms"``: 10,000,000), a size in
        bytes, a percentage as a share.

        Raises:
            UserError: the class has no such parameter, or lacks the value of another.
        """
        return parametrised(cls, parameters)

    def stats(self) -> Iterable[Stat]:
        """Returns the policy's own figures, which reports, tables and metrics show; called when a result is
        drawn up.
        """
        return ()


class HostScheduler(_Policy):
    """Decides which pending request goes next; the value of ``host.scheduler``.

    Every request is admitted once and leaves once: it is chosen, or it has waited for ``host.deadline``
    (``none``: never) and is removed.
    """

    now_ns: int = 0
    """The simulated time, set before each call."""

    def admit(self, request: Request) -> int | None:
        """Called when a request enters the pending queue; returns the number of its batch, if it joins one.

        Batches are numbered from 1 in the order of creation; ``scheduler.batches`` of the result is the
        highest number.
        """
        raise NotImplementedError(_LACKS)

    def choose(self) -> int | Sequence[int] | None:
        """Removes and returns what goes next: a request's id, a batch's ids in order, or None for nothing.

        It is called while requests are pending. The translation page of a batch's first request is read once
        for the whole batch; the requests behind the first count as prioritized.
        """
        raise NotImplementedError(_LACKS)

    def remove(self, id: int) -> None:  # noqa: A002 - what it is called everywhere
        """Removes a request that is dispatched because its deadline has passed."""
        raise NotImplementedError(_LACKS)

    def grown(self, request: Request) -> None:
        """Called when a pending request has merged with a later one (``host.merge_limit``); it has its new
        offset, size and pages.
        """

    def completed(self, id: int) -> None:  # noqa: A002 - as above
        """Called when a dispatched request completes.

        A class that has this method may hold requests back: `choose` may return None while requests wait, as
        long as others have not completed; it is called again when one does.
        """


@dataclass(frozen=True)
class Candidates:
    """The closed blocks of a chip, one per row, in the order in which their valid pages last changed.

    ``valid.argmin()`` is the greedy choice, and ``closed.argmin()`` is the fifo choice.
    """

    block: NDArray[np.int64]
    """Numbers of the erase blocks."""
    valid: NDArray[np.int64]
    """How many valid logical pages each block has."""
    erases: NDArray[np.int64]
    """How often each block was erased."""
    closed: NDArray[np.int64]
    """When each block became full, counted in the log's writes; no two blocks have the same value."""
    changed: NDArray[np.int64]
    """When each block last lost a valid page; if it has lost none since it became full, when it became full.
    """

    @classmethod
    def of_bytes(cls, *columns: bytes) -> Candidates:
        """Makes the candidates from columns of 64-bit numbers."""
        import numpy as np

        return cls(*(np.frombuffer(column, dtype=np.int64) for column in columns))

    def __len__(self) -> int:
        """Returns the number of blocks."""
        return len(self.block)


class VictimPolicy(_Policy):
    """Decides which block is collected next; the value of ``ftl.gc`` or ``ftl.translation_gc``."""

    def choose(self, candidates: Candidates) -> int:
        """Returns the row of the block to collect.

        Collecting a block whose pages are all valid gains nothing. A policy may choose such a block; but
        while another block would gain something, it may do so at most as many times in succession as the chip
        has closed blocks.
        """
        raise NotImplementedError(_LACKS)


class Replacement(_Policy):
    """Decides which entry leaves a full mapping cache of dftl; the value of ``ftl.cache_policy``. Keys are
    LPNs.
    """

    def hit(self, key: int) -> None:
        """Called when an entry is accessed."""

    def insert(self, key: int) -> None:
        """Called when an entry has been added."""
        raise NotImplementedError(_LACKS)

    def victim(self) -> int:
        """Returns the key of the entry that is to leave; `remove` is then called for it."""
        raise NotImplementedError(_LACKS)

    def remove(self, key: int) -> None:
        """Called when an entry leaves."""


class Placement(_Policy):
    """Decides which open block of its chip takes a page; the value of ``ftl.placement``.

    A front is a class of data with an open block of its own on each chip.

    Ages are counted in pages that the host writes.
    """

    fronts: ClassVar[int]
    """Number of fronts, at most 63."""

    def front(self, lpn: int, cause: str, stream: int, age: int | None) -> int:
        """Returns the front of a page that is about to be written or copied, from 0 to ``fronts - 1``.

        ``cause`` is ``host`` or ``pad`` for a write, ``gc`` for a copy, and ``stream`` that of the request.
        ``age`` is, for a write, how long the version that it replaces was valid (None: there is no such
        version); for a copy, how long ago its data was written.
        """
        raise NotImplementedError(_LACKS)

    def front_name(self, front: int) -> str:
        """Returns the name of a front, for results."""
        return f"front {front}"

    def overwritten(self, lpn: int, front: int, age: int | None) -> None:
        """Called when a version in this front is about to be overwritten or is trimmed, at this age."""

    def save(self) -> Sequence[int]:
        """Returns what a saved device (``--save-state``) must keep of the policy, as numbers below 2**64."""
        return ()

    def load(self, saved: Sequence[int]) -> None:
        """Takes back what `save` returned."""


_ADD: dict[type, Callable[[str, Any], None]] = {
    HostScheduler: lambda name, policy: _core.add_host_scheduler(
        name, policy, policy.completed is not HostScheduler.completed
    ),
    VictimPolicy: _core.add_victim_policy,
    Placement: _core.add_placement,
    Replacement: _core.add_replacement,
}
_KEYS = {
    HostScheduler: ("host.scheduler",),
    VictimPolicy: ("ftl.gc", "ftl.translation_gc"),
    Placement: ("ftl.placement",),
    Replacement: ("ftl.cache_policy",),
}
"""The keys whose value each kind of policy can be."""
_lock = threading.Lock()
_registered: dict[str, type] = {}
"""All classes that the core knows, by name."""
_named: dict[str, type] = {}
"""The classes that were passed as objects, by the names that `name_of` gave them."""
_loaded: dict[tuple[str, str], ModuleType] = {}
"""The modules that were loaded, by file name and hash of the file's content."""
_allowed: set[str] = set()
"""The names of classes that the user has allowed; `PREFIX` allows all classes."""


def name_of(policy: type) -> str:
    """Registers a class; returns the name by which configurations and results know it from now on.

    Raises:
        UserError: the class is not a policy.
    """
    with _lock:
        for count in range(1, len(_named) + 2):
            name = f"{PREFIX}{policy.__qualname__}" + (f"#{count}" if count > 1 else "")
            if _named.get(name, policy) is policy:
                break
        _add(name, policy)
        _named[name] = policy
        return name


def allow_python() -> None:
    """Lets configurations and studies name policies as ``python:FILE.py:CLASS``, which run as code.

    Without this permission, only what the user passes directly may name a policy: ``--set``, ``--vary``, the
    argument ``set``, a keyword, or a class itself.
    """
    _allowed.add(PREFIX)


def find(texts: Iterable[str]) -> None:
    """Registers the classes that the user's own values name, as ``python:FILE.py:CLASS``.

    Raises:
        UserError: there is no such file or class, or it cannot be loaded.
    """
    for text in texts:
        if text.startswith(PREFIX) and text not in _named:
            _allowed.add(text)
            with _lock:
                _add(text, _class_of(text))


def find_in(text: str) -> list[str]:
    """Registers the allowed classes that a TOML or JSON text names; returns the other names.

    Raises:
        UserError: see `find`.
    """
    named = named_in(text)
    refused = [] if PREFIX in _allowed else [name for name in named if name not in _allowed | _named.keys()]
    find(name for name in named if name not in refused)
    return refused


def refusal(name: str) -> str:
    """Returns a message that says what to do about a name that `find_in` refused."""
    return (
        f"{name} is code that would run, and a file names it: if you trust it, pass --allow-python"
        " (in Python: ftlab.allow_python())"
    )


def misplaced(key: str, name: str) -> str | None:
    """Returns what a class that `find` has registered is for, if it is not for ``key``; else None."""
    policy = _registered.get(name)
    if policy is None:
        return None
    kind, keys = next((base, keys) for base, keys in _KEYS.items() if issubclass(policy, base))
    if key in keys:
        return None
    needed = next((f"; {key} takes a {base.__name__}" for base, own in _KEYS.items() if key in own), "")
    return f"{policy.__name__} is a {kind.__name__}, for {' or '.join(keys)}{needed}"


def named_in(text: str) -> list[str]:
    """Returns the values in a TOML or JSON text that name a class."""
    return [found[1] for found in _NAMED.findall(text)]


def content_of(text: str) -> str:
    """Returns what identifies the classes that a TOML or JSON text names, as part of a run's identity: the
    hash of each class's file.
    """
    parts = []
    for name in sorted(set(named_in(text))):
        path = Path(parts_of(name)[0])
        parts.append(
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else repr(_named.get(name))
        )
    return " ".join(parts)


def _add(name: str, policy: Any) -> None:
    for base, add in _ADD.items():
        if isinstance(policy, type) and issubclass(policy, base) and policy is not base:
            try:
                check(policy, {})
            except UserError as error:
                raise UserError(f"{name}: {error}") from None
            _registered[name] = policy
            return add(name, policy)
    bases = ", ".join(f"ftlab.{base.__name__}" for base in _ADD)
    raise UserError(f"{name}: a policy is a class derived from one of {bases}")


def _class_of(text: str) -> type:
    file, name, parameters = parts_of(text)
    if not file:
        raise UserError(f"{text}: {WRITE}")
    module = _module(text, Path(file))
    policies = [
        known
        for known, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, tuple(_ADD))
    ]
    own = [known for known in policies if vars(module)[known].__module__ == module.__name__]
    found = getattr(module, name, None)
    if found is None:
        raise UserError(f"{text}: {file} has no class {name}; its policies are: {', '.join(own) or 'none'}")
    if parameters and isinstance(found, type):
        try:
            return parametrised(found, parameters)
        except UserError as error:
            raise UserError(f"{text}: {error}") from None
    return found  # type: ignore[no-any-return]  # `_add` checks what it is


def _module(text: str, path: Path) -> ModuleType:
    try:
        content = path.read_bytes()
    except OSError as error:
        more = f"; {WRITE}" if ":" in str(path) else ""
        raise UserError(f"{text}: {path}: {error.strerror}{more}") from None
    key = (str(path.resolve()), hashlib.sha256(content).hexdigest())
    if key in _loaded:
        return _loaded[key]
    spec = importlib.util.spec_from_file_location(f"ftlab_policy_{len(_loaded)}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UserError(f"{text}: {path}: not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        exec(compile(content, str(path), "exec"), vars(module))
    except Exception as error:
        raise UserError(f"{text}: it cannot be loaded: {_shown(error)}") from error
    _loaded[key] = module
    return module


def told(name: str, method: str, now_ns: int, request: int | None, error: BaseException) -> str:
    """Makes the message for an exception in a policy's method; called by the core."""
    of = f", request {request}" if request is not None else ""
    return f"{name}: {method}() at {now_ns} ns{of}: {_shown(error)}"


def _shown(error: BaseException) -> str:
    """Formats an exception with those lines of its traceback that are the user's own."""
    said = "".join(traceback.format_exception_only(error)).strip()
    frames = [
        (frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if not _is_internal(frame)
    ]
    lines = traceback.StackSummary.extract(iter(frames)).format()
    return said + "".join("\n" + line.rstrip() for line in lines)


def _is_internal(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    return name.startswith(("ftlab.", "importlib"))
