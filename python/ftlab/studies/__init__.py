"""Studies of many runs: what they declare, the runs they need, and running those that are missing.

A study is a TOML file with axes; ``ftlab reproduce`` has one for each figure of a paper.

- `toml`, `declaration`: the file, checked
- `expression`: the small language of values
- `plan`: from axes to runs, each named by the hash of all that it depends on
- `cache`, `run`: which of them are missing, and running those
- `measure`: what is measured of one configuration
"""
