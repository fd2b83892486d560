"""The page of a calibration: measured and modelled in one picture for each job, errors, keys, rows."""

from __future__ import annotations

from ftlab.calibration.fit import Fit
from ftlab.calibration.written import SHORT, data, percent
from ftlab.studies import pages

SECTIONS = (
    (
        "jobs",
        "Measured and modelled",
        "Points were measured, lines are the model. Point at one to see its figures.",
    ),
    (
        "residuals",
        "Errors",
        "By how much the model is above what was measured.",
    ),
    (
        "keys",
        "Fitted keys",
        "Between which values the error is within 10 % of the best, the other keys following.",
    ),
    ("rows", "All rows", "A click on a heading sorts."),
)


def render(fit: Fit, title: str, command: str) -> str:
    """Returns the page as one file."""
    fitted = sum(not each.held for each in fit.pairs)
    said = f"{percent(fit.error(False))} off on {fitted:,} rows"
    held = fit.error(True)
    if held is not None:
        said += f", {percent(held)} on {len(fit.pairs) - fitted:,} rows held out of the fit"
    lines = [f"From {fit.base}; {fit.trials:,} trials, seed {fit.seed}"]
    lines += [
        f"Left out, {row.op} of {row.bs:,} B, depth {row.depth}: {why}" for row, why in fit.passed_over[:1]
    ]
    page = pages.Page(
        title=f"Calibration: {title}",
        script="calibration.js",
        said=said,
        sections=SECTIONS,
        choices=(),
        command=command,
        lines=lines,
    )
    return pages.render(page, {**data(fit), "short": SHORT})
