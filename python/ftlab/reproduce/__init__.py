"""``ftlab reproduce``: the papers' figures and tables, published against measured.

``papers/NAME`` declares what there is: ``paper.toml``, one file per figure or table, and
``published.toml`` with what the paper states. Here is what reads and runs it:

- `papers`: the files, checked
- `plan`: from a figure to the runs it needs
- `cache`, `run`: which of them are missing, and running those
- `study`: a figure's measured values, and its CSV
- `expression`: the small language of values and claims
- `claims`: verdicts
- `figures`: pictures
- `page`: the page
"""
