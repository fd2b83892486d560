#!/bin/bash
# fio 3.33-3 of Debian 12 (3.39 and 3.41 do the same, with other numbers).
#
# A job that only writes at random, with the random map that is fio's default, is expected to write its whole `size`:
# 16 MiB in blocks of 8 KiB are 2,048 writes. If the block size of reads is smaller, as with `bs=4k,8k` or `bs=,8k`, the
# job ends early, without a message and with exit code 0. The map has a bit for each block of the smallest size of any
# direction (4,096 here), and a write of block n marks bit n; when a drawn block is taken, the next free bit is beyond the
# file's 2,048 blocks of 8 KiB, and the job takes that for the end of its file.
#
# Seen: 2,048 writes with bs=8k and with bs=8k,8k; 1,485 with bs=4k,8k; no fewer than all with bs=8k,4k (4,096 of 4 KiB).
# Needs apt-get and what Debian's fio links to. Ends with 1 if any of this has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download fio=3.33-3 >/dev/null 2>&1
dpkg -x fio_3.33-3_*.deb .

writes() {
    ./usr/bin/fio --name=job --ioengine=null --rw=randwrite --size=16m --bs="$1" --output-format=terse |
        tail -n 1 | cut -d ';' -f 47
}

status=0
expect() {
    kib=$(writes "$1")
    echo "bs=$1: $kib KiB of 16384 written"
    [ "$kib" = "$2" ] || status=1
}
expect 8k 16384
expect 8k,8k 16384
expect 8k,4k 16384
expect 4k,8k 11880
exit $status
