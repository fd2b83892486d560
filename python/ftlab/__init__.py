"""ftlab, a laboratory for flash storage.

One stack, from the application's I/O down to the NAND array, in which every layer can be exchanged,
measured and compared::

    import ftlab

    result = ftlab.run("map-plus", trace="a.csv", host__scheduler="map+")
    print(result.latency.all.mean_ns, result.mapping.hit_ratio)
    result.requests  # a polars DataFrame, one row per request

    comparison = ftlab.compare("map-plus", {"host.scheduler": ["noop", "map+"]}, trace="a.csv")
    print(comparison)
"""

# True for type checkers; `typing` would take longer to load than everything else here.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from ftlab import trace
    from ftlab._core import InternalError, Request, UserError, __version__
    from ftlab.api import compare, components, presets, reference, run, schema
    from ftlab.commands import Swept, calibrate, crash, diff, sweep, tune
    from ftlab.live.serving import LiveDevice, serve
    from ftlab.policies import (
        Candidates,
        HostScheduler,
        Placement,
        Replacement,
        Stat,
        VictimPolicy,
        allow_python,
    )
    from ftlab.results.comparison import Comparison, Variant
    from ftlab.results.histogram import Histogram
    from ftlab.results.result import Result, Section
    from ftlab.simulation import Simulation
    from ftlab.traces import convert_trace, generate_trace, read_trace, trace_info

__all__ = [
    "Candidates",
    "Comparison",
    "Histogram",
    "HostScheduler",
    "InternalError",
    "LiveDevice",
    "Placement",
    "Replacement",
    "Request",
    "Result",
    "Section",
    "Simulation",
    "Stat",
    "Swept",
    "UserError",
    "Variant",
    "VictimPolicy",
    "__version__",
    "allow_python",
    "calibrate",
    "compare",
    "components",
    "convert_trace",
    "crash",
    "diff",
    "generate_trace",
    "presets",
    "read_trace",
    "reference",
    "run",
    "schema",
    "serve",
    "sweep",
    "trace",
    "trace_info",
    "tune",
]

# Maps each name to its module, which is loaded on first use, so that the command line starts fast.
_HOMES = {
    "_core": ("InternalError", "Request", "UserError", "__version__"),
    "commands": ("Swept", "calibrate", "crash", "diff", "sweep", "tune"),
    "api": ("compare", "components", "presets", "reference", "run", "schema"),
    "results.comparison": ("Comparison", "Variant"),
    "results.histogram": ("Histogram",),
    "policies": (
        "Candidates",
        "HostScheduler",
        "Placement",
        "Replacement",
        "Stat",
        "VictimPolicy",
        "allow_python",
    ),
    "results.result": ("Result", "Section"),
    "live.serving": ("LiveDevice", "serve"),
    "simulation": ("Simulation",),
    "traces": ("convert_trace", "generate_trace", "read_trace", "trace_info"),
}
_MODULES = ("trace",)
"""Modules that are used as they are: `ftlab.trace.fit`."""
_HOME = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:
    # This is hidden from type checkers, which thus know exactly the names imported above.

    def __getattr__(name: str) -> object:
        """Imports the module that defines a public name; returns what the name stands for."""
        from importlib import import_module

        if name in _MODULES:
            return import_module(f"ftlab.{name}")
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"ftlab.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Returns all public names, whether or not their modules have been loaded."""
    return sorted({*globals(), *__all__})
