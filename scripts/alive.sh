#!/usr/bin/env bash
# Runs a command, and says every eight seconds that it is still at work: alive.sh WHAT COMMAND... The background
# process that says so ends when this shell closes their pipe; the command itself runs in the foreground, so that
# an interrupt reaches it.
what=$1
shift
line=''
[[ -t 2 ]] && line=$'\r\e[K'
exec {open}> >(while read -r -t 8; (($? > 128)); do echo "$line... $what: $SECONDS s so far" >&2; done)
"$@" {open}>&-
