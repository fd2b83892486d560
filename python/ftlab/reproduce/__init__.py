"""``ftlab reproduce``: the papers' figures and tables, published against measured.

``papers/NAME`` declares what there is: ``paper.toml``, one file per figure or table, and ``published.toml``
with what the paper states. Each figure is a study (`ftlab.studies`); this package adds to its runs:

- `papers`: the files, checked
- `study`: a figure's measured values as CSV
- `claims`: verdicts
- `reproduction_page`: the page
- `command`: planning, running what is missing, judging and writing
"""
