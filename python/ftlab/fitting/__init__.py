"""Fitting a generator's parameters to targets: ``ftlab trace fit``.

`targets` states what has to be matched, `measure` measures the same figures of a workload, `solve` finds
roots, `arrivals` and `sizes` hold the closed forms, `fit` combines all of these, and `report` writes the
model and the values reached.
"""

from ftlab.fitting.fit import Fit, Fitter
from ftlab.fitting.targets import Targets, read_targets, targets_of_trace

__all__ = ["Fit", "Fitter", "Targets", "read_targets", "targets_of_trace"]
