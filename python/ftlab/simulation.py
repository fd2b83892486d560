"""A simulation whose caller advances the time and submits the requests."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ftlab import _core
from ftlab._core import UserError
from ftlab.configs import ConfigLike, Scalar, load, overrides_of
from ftlab.results.result import Result
from ftlab.units import duration

if TYPE_CHECKING:
    import numpy as np

    from ftlab._core import Completion


class _Closed:
    def __getattr__(self, name: str) -> Any:
        raise UserError("this simulation is closed")


class Simulation:
    """A device at time 0, preconditioned or loaded, without a workload.

    You submit requests and advance the time; the requests that completed are returned::

        with ftlab.Simulation("map-plus") as device:
            device.submit("W", offset=0, size=4096)
            device.submit("R", offset=0, size=4096, at_ns=1_000_000)
            for done in device.run_until_idle():
                print(done.id, done.complete_ns - done.arrival_ns)
            print(device.result())

    Times are nanoseconds, offsets and sizes bytes. Objects are independent of one another. An object takes
    one call at a time; calls that move time release the GIL. Where ``host.merge_limit`` merges requests,
    every submission has its own completion, and ``mapping_misses`` is counted for the first of the merged
    submissions.
    """

    def __init__(
        self,
        config: ConfigLike,
        *,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - the name of the command line's option
        load_state: str | os.PathLike[str] | None = None,
        check: bool = False,
        collect: bool = False,
        **overrides: Scalar,
    ) -> None:
        """Makes the device of a configuration.

        Args:
            config: as for `ftlab.run`; its workload is not used.
            set: overrides by dotted key.
            load_state: file from which the state at time 0 is read, instead of preconditioning.
            check: verify every invariant after every request (slow).
            collect: keep every request for `Result.requests` of `result`.
            overrides: further keys to set, as for `ftlab.run`.

        Raises:
            UserError: the configuration or the state is at fault; the text says where.
        """
        self._config = load(config, overrides_of(set, overrides))
        self._core: _core.Simulation | _Closed = _core.Simulation(
            self._config, load_state=load_state, check=check, collect=collect
        )

    def submit(
        self,
        op: str,
        offset: int,
        size: int,
        *,
        at_ns: int | None = None,
        fua: bool = False,
        stream: int = 0,
    ) -> int:
        """Submits a request and returns its id, counted from 1.

        Args:
            op: R, W, T (trim) or F (flush; offset and size do not matter).
            offset: address of the first byte.
            size: number of bytes.
            at_ns: time of arrival, by default now; not before now, and not before the last submitted arrival.
                A request that arrives now has no influence on decisions already taken at this instant.
            fua: the write completes only when it would survive a power cut.
            stream: the tenant of the request, or the placement handle of its data (0 to 65535; 0: none).
                Requests of different streams are not merged; ``ftl.placement`` may keep their data apart.

        Raises:
            UserError: the range, the operation, the time or the stream is invalid; then nothing has changed.
        """
        return self._core.submit(op, offset, size, at_ns=at_ns, fua=fua, stream=stream)

    def submit_many(self, columns: Mapping[str, Any]) -> range:
        """Submits requests by column and returns their ids.

        Args:
            columns: ``op`` (letters, or 0 to 3 for R, W, T, F), ``offset``, ``size`` and, where they are
                given, ``at_ns``, ``fua`` and ``stream``: arrays, lists or a frame's columns, all of one
                length.

        Raises:
            UserError: a column is missing, or a row is wrong; the rows before it have been submitted.
        """
        import numpy as np

        known = {"op": np.uint8, "offset": np.uint64, "size": np.uint64, "at_ns": np.uint64, "fua": np.uint8}
        known["stream"] = np.uint64
        unknown = [name for name in columns if name not in known]
        if unknown:
            raise UserError(f"no column {unknown[0]!r} of a request; there are: {', '.join(known)}")
        arrays = {}
        for name, kind in known.items():
            if name in columns:
                values = np.asarray(columns[name])
                if name == "op" and values.dtype.kind in "USO":
                    values = _codes(values)
                if values.dtype.kind == "f" or (
                    values.dtype.kind == "i" and values.size and values.min() < 0
                ):
                    raise UserError(f"column {name}: whole numbers from 0 on are needed")
                arrays[name] = np.ascontiguousarray(values.astype(kind, copy=False))
        if "op" in arrays and not arrays["op"].size:
            return range(0)
        first, last = self._core.submit_columns(arrays)
        return range(first, last + 1)

    def next_event_ns(self) -> int | None:
        """Returns the time, in ns, of the next event if nothing else is submitted; None if there is none."""
        return self._core.next_event_ns()

    def advance(self, until_ns: int) -> list[Completion]:
        """Simulates up to and including ``until_ns``; returns the requests that completed.

        Afterwards `now_ns` is ``until_ns``, even if nothing happened.

        Raises:
            UserError: ``until_ns`` is in the past, or the power is cut.
        """
        return self._core.advance(until_ns)

    def run_until_idle(self) -> list[Completion]:
        """Simulates until the last request has completed; returns the requests that completed.

        Work of the device itself that no request waits for does not begin at that instant, but when time is
        next advanced.
        """
        return self._core.run_until_idle()

    @property
    def now_ns(self) -> int:
        """Returns the simulated time in ns."""
        return self._core.now_ns

    def valid_pages(self) -> np.ndarray[Any, np.dtype[np.uint32]]:
        """Returns how many logical pages of user data each erase block has now: a row per chip, a column per
        block.

        Rows are dies or planes if these work independently (``flash.interleave``, ``flash.multi_plane``).
        Garbage collection erases blocks with few valid pages. Blocks of translation pages count as 0.
        """
        import numpy as np

        valid, rows = self._core.valid_pages()
        return np.asarray(valid).reshape(rows, -1)

    def result(self) -> Result:
        """Returns the result up to now, in the form of `ftlab.run`; the simulation can go on afterwards."""
        return Result.of_run(self._core.result())

    def cut(self, seed: int = 1) -> dict[str, int]:
        """Cuts the power now; returns how many operations had finished, and how many programs and erases were
        torn.

        Operations under way are torn, memory is lost, and requests that have not completed never will. The
        configuration needs ``ftl.power_safe`` (the FTL then keeps what recovery needs).

        Raises:
            UserError: the configuration lacks ``ftl.power_safe``.
        """
        return self._core.cut(seed)

    def recover(self) -> dict[str, int]:
        """Starts the device again from its flash alone; returns the pages read and written, and the time
        taken.

        From then on, `result` reports only what happens after the recovery.

        Raises:
            UserError: the power is on.
        """
        return self._core.recover()

    def close(self) -> None:
        """Frees the device's memory, as the end of a ``with`` block does; earlier results stay valid."""
        self._core = _Closed()

    def __enter__(self) -> Simulation:
        """Returns the object itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the object."""
        self.close()

    def __repr__(self) -> str:
        """Returns a line that says what is simulated, and the simulated time."""
        config = json.loads(self._config.json())
        parts = f"{config['preset'] or 'custom'}: {config['host']['scheduler']} over {config['ftl']['kind']}"
        if isinstance(self._core, _Closed):
            return f"<ftlab.Simulation {parts}, closed>"
        try:
            state = f"at {duration(self.now_ns)}"
        except UserError:
            state = "busy in another call"
        return f"<ftlab.Simulation {parts}, {state}>"


def _codes(letters: Any) -> Any:
    import numpy as np

    found = np.full(letters.shape, 255, dtype=np.uint8)
    for code, letter in enumerate("RWTF"):
        found[letters == letter] = code
    if (found == 255).any():
        wrong = letters[found == 255][0]
        raise UserError(f"op is {wrong!r}; it is one of R, W, T (trim) and F (flush)")
    return found
