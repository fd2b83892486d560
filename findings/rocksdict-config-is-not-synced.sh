#!/bin/bash
# rocksdict 0.3.29 (Python 3.11, Linux): WriteOptions.sync makes RocksDB sync its log, its manifest and its directory,
# but the file rocksdict-config.json beside them, which rocksdict itself writes and reads, is never synced. A power
# cut can lose it, and then the database, with every commit in it, is not opened with the options that made it.
#
# Seen:
#   syncs of rocksdict-config.json: 0, of other files: 16
#   without it: Invalid argument: leveldb.BytewiseComparator: does not match existing comparator rocksdict
# Needs strace. Exit status 0: so it is still; 1: it has changed; 2: it cannot be tried here.
set -u
command -v strace > /dev/null || { echo "strace is not installed"; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv" && "$work/venv/bin/pip" install --quiet rocksdict==0.3.29 || exit 2
cat > "$work/put.py" <<'EOF'
import sys
from rocksdict import Options, Rdict, WriteOptions

writes = WriteOptions()
writes.sync = True
base = Rdict(sys.argv[1], Options())
base.set_write_options(writes)
base["key"] = "value"
base.close()
EOF
cat > "$work/open.py" <<'EOF'
import sys
from rocksdict import Options, Rdict

try:
    print(Rdict(sys.argv[1], Options())["key"])
except Exception as error:
    print(error)
EOF
strace -f -y -e trace=fsync,fdatasync,syncfs,sync,sync_file_range -o "$work/calls" \
    "$work/venv/bin/python" "$work/put.py" "$work/base" || exit 2
of_config=$(grep -c 'sync.*rocksdict-config' "$work/calls")
others=$(grep -c 'sync(.*/base' "$work/calls")
echo "syncs of rocksdict-config.json: $of_config, of other files: $others"
rm "$work/base/rocksdict-config.json" || exit 1
told=$("$work/venv/bin/python" "$work/open.py" "$work/base")
echo "without it: $told"
[ "$of_config" = 0 ] && [ "$others" -gt 0 ] && [[ "$told" == *"does not match existing comparator"* ]]
