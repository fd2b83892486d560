"""Fitting a generator's parameters to targets: ``ftlab trace fit``.

`targets` states what has to be matched, `measure` takes the same figures from a workload, `solve` finds
roots, `arrivals` and `sizes` have the closed forms, `fit` puts them together, `report` writes the model and
what was reached.
"""

from ftlab.fitting.fit import Fit, Fitter
from ftlab.fitting.targets import Targets, read_targets, targets_of_trace

__all__ = ["Fit", "Fitter", "Targets", "read_targets", "targets_of_trace"]
