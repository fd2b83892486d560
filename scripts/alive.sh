#!/usr/bin/env bash
# Runs a command, and says every eight seconds that it is still at work: alive.sh WHAT COMMAND... A pipe that
# closes with this shell ends the background process; the command stays in the foreground, so that it gets an
# interrupt.
what=$1
shift
line=''
[[ -t 2 ]] && line=$'\r\e[K'
exec {open}> >(while read -r -t 8; (($? > 128)); do echo "$line... $what: $SECONDS s so far" >&2; done)
"$@" {open}>&-
