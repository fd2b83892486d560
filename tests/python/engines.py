"""Programs that store numbers in a storage engine and print those that it has acknowledged, for power cuts.

``python tests/python/engines.py ENGINE`` prints one, to be run by ``ftlab crash --live --fuse``: its data are
on an ext4 file system on the device. docs/cut-the-power.md has what came out.
"""

from __future__ import annotations

import sys

NUMBERS = """
        store, text = os.path.join(fs, "store"), "x" * 2000
        ENGINE
        if mode == "judge":
            told = open("told").read().split() if os.path.exists("told") else []
            kept = dict(all_of())
            lost = [number for number in told if kept.get(int(number)) != text]
            sys.exit(f"{lost} of {len(told)} lost" if lost else 0)
        with open("told", "w", buffering=1) as told:
            for number in range(100):
                put(number, text)
                print(number, file=told)
"""

SQLITE = """
        import sqlite3
        base = sqlite3.connect(store, isolation_level=None)
        base.execute("pragma journal_mode=JOURNAL").fetchall()
        base.execute("pragma synchronous=SYNCHRONOUS")
        base.execute("pragma wal_autocheckpoint=20").fetchall()
        base.execute("create table if not exists t (n integer primary key, text)")
        def put(number, text):
            base.execute("insert into t values (?, ?)", (number, text))
        def all_of():
            found = base.execute("pragma integrity_check").fetchall()
            return base.execute("select n, text from t") if found == [("ok",)] else sys.exit(f"{found}")
"""
LMDB = """
        import lmdb
        base = lmdb.open(store, map_size=16 << 20, metasync=METASYNC)
        def put(number, text):
            with base.begin(write=True) as transaction:
                transaction.put(b"%05d" % number, text.encode())
        def all_of():
            with base.begin() as transaction:
                return [(int(key), value.decode()) for key, value in transaction.cursor()]
"""
ROCKSDB = """
        from rocksdict import Options, Rdict, WriteOptions
        options, writes = Options(raw_mode=True), WriteOptions()
        options.set_write_buffer_size(64 << 10)
        writes.sync = True
        base = Rdict(store, options)
        base.set_write_options(writes)
        def put(number, text):
            base[b"%05d" % number] = text.encode()
        def all_of():
            return [(int(key), value.decode()) for key, value in base.items()]
"""
LEVELDB = """
        import plyvel
        base = plyvel.DB(store, create_if_missing=True, write_buffer_size=64 << 10)
        def put(number, text):
            base.put(b"%05d" % number, text.encode(), sync=True)
        def all_of():
            return [(int(key), value.decode()) for key, value in base]
"""
ZODB = """
        import transaction, ZODB, ZODB.FileStorage
        from BTrees.OOBTree import OOBTree
        root = ZODB.DB(ZODB.FileStorage.FileStorage(store)).open().root()
        def put(number, text):
            root.setdefault("all", OOBTree())[number] = text
            transaction.commit()
        def all_of():
            return root.get("all", {}).items()
"""
DUCKDB = """
        import duckdb
        base = duckdb.connect(store)
        base.execute("pragma wal_autocheckpoint='20KB'")
        base.execute("create table if not exists t (n integer, text varchar)")
        def put(number, text):
            base.execute("insert into t values (?, ?)", (number, text))
        def all_of():
            return base.execute("select n, text from t").fetchall()
"""

ENGINES = {
    **{
        f"sqlite-{journal}-{how}": SQLITE.replace("JOURNAL", journal).replace("SYNCHRONOUS", how)
        for journal, how in (
            *(("wal", "full"), ("wal", "normal"), ("truncate", "full"), ("persist", "full")),
            *(("delete", "full"), ("delete", "extra")),
        )
    },
    "lmdb": LMDB.replace("METASYNC", "True"),
    "lmdb-nometasync": LMDB.replace("METASYNC", "False"),
    "rocksdb": ROCKSDB,
    "leveldb": LEVELDB,
    "zodb": ZODB,
    "duckdb": DUCKDB,
}
"""The programs by name; each commits a number at a time, and checkpoints often."""


def program(engine: str) -> str:
    """Returns the program of an engine, to be put on a file system."""
    return NUMBERS.replace("        ENGINE", ENGINES[engine].strip("\n"))


if __name__ == "__main__":
    from test_live_cuts import store_of

    print(store_of(program(sys.argv[1])))
