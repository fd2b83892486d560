"""Makes ``tests/oracle`` importable as the package ``oracle``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
