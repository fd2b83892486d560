#!/usr/bin/env bash
# pandas 3.1.1, fastparquet 2026.9.0, polars 2.1.0, pyarrow 26.0.1, duckdb 2.0.1
#
# fastparquet stores a column of timedelta64 as Parquet's TIME(us), the time of a day, which the format limits to less
# than 24 h. It reads its own files back whole. Others do not: of a column with 1 s and 30 h, polars makes 00:00:01 and
# null, without an error; pyarrow makes times of which the second is "value out of range"; DuckDB refuses the whole file.
# So a trace whose times or latencies are spans loses all from the second day on, wherever it is read but where it was
# written. pandas with pyarrow stores the same column as a plain INT64, whose unit is in ARROW:schema alone: polars reads
# it as a duration, DuckDB as the integer 108000000000 (for 30 h, in us).
#
# Output seen:
#   fastparquet: type TIME, fastparquet 1 day, 6:00:00, polars None, duckdb InvalidInputException
#   pyarrow: type none, fastparquet 108000000000, polars 1 day, 6:00:00, duckdb 108000000000
set -euo pipefail
script=$(realpath "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    pandas==3.1.1 fastparquet==2026.9.0 polars==2.1.0 pyarrow==26.0.1 duckdb==2.0.1
cd "$folder"
cat > seen.py <<'PY'
import warnings

import duckdb
import fastparquet
import pandas as pd
import polars as pl
import pyarrow.parquet as pq

warnings.simplefilter("ignore")
frame = pd.DataFrame({"span": pd.to_timedelta([1, 30 * 3600], unit="s")})


def of(read):
    try:
        value = read()
    except Exception as error:
        return type(error).__name__
    return str(value.to_pytimedelta()) if isinstance(value, pd.Timedelta) else str(value)


for engine in ("fastparquet", "pyarrow"):
    path = f"{engine}.parquet"
    frame.to_parquet(path, engine=engine)
    logical = pq.ParquetFile(path).schema.column(0).logical_type.type
    seen = {
        "fastparquet": of(lambda: fastparquet.ParquetFile(path).to_pandas()["span"][1]),
        "polars": of(lambda: pl.read_parquet(path)["span"][1]),
        "duckdb": of(lambda: duckdb.sql(f"select span from '{path}'").fetchall()[1][0]),
    }
    print(f"{engine}: type {logical.lower() if logical == 'NONE' else logical}, " + ", ".join(f"{k} {v}" for k, v in seen.items()))
PY
"venv/bin/python" seen.py | tee seen.txt
diff <(sed -n 's/^#   //p' "$script") seen.txt
