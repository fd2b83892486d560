#!/bin/bash
# fio 3.33-3 of Debian 12 (3.39 and 3.41 do the same).
#
# `write_iolog` is expected to list each request once, in the order of issue. With `ioengine=null`, which people use to look
# at what a job would do, and an `iodepth` above 1, nearly each request stands there twice: the engine answers "busy" to a
# request while another is queued, fio puts it back and writes a line each time it tries. fio's own count of requests is
# right. A replay of such a log does everything twice.
#
# Seen: 16 reads by fio's count in both cases; 16 lines with iodepth=1, 31 with iodepth=4, 16 different offsets in each.
# Needs apt-get and what Debian's fio links to. Ends with 1 if any of this has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download fio=3.33-3 >/dev/null 2>&1
dpkg -x fio_3.33-3_*.deb .

status=0
expect() {
    ./usr/bin/fio --name=job --ioengine=null --rw=randread --size=64k --bs=4k --iodepth="$1" --write_iolog="log$1" \
        --output-format=json >"out$1"
    counted=$(sed -n 's/.*"total_ios" : \([0-9]*\).*/\1/p' "out$1" | head -n 1)
    listed=$(grep -c ' read ' "log$1")
    places=$(sed -n 's/.* read \([0-9]*\) .*/\1/p' "log$1" | sort -u | wc -l)
    echo "iodepth=$1: $counted reads by fio's count, $listed lines, $places different offsets"
    [ "$counted $listed $places" = "16 $2 16" ] || status=1
}
expect 1 16
expect 4 31
exit $status
