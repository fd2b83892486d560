"""Studies of many runs: what they declare, the runs they need, and running those that are missing.

A study is a TOML file with axes; ``ftlab reproduce`` has one for each figure of a paper, ``ftlab sweep`` runs
one of your own, and ``ftlab tune`` chooses its runs as it goes.

- `toml`, `axes`, `declaration`: the file, checked
- `expression`, `series`: the small language of values
- `plan`: from axes to runs, each named by the hash of all that it depends on
- `cache`, `run`: which runs are missing, and running those
- `executor`, `cluster`, `worker`: where runs are done: threads of this process, or Dask
- `measure`: what is measured of one configuration
- `sweep`, `rows`, `replications`, `fleet`: a study's tables
- `cells`, `figures`, `looks`: its panels, drawn
- `tuning`, `tune`, `front`: a search, and its outcome
- `sweep_page`, `tuned_page`, `pages`: pages of studies and of searches
- `split`: a trace of many volumes, split into one for each
- `alone`: a lock on the directory of results
"""
