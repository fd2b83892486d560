"""`make kernel-order`: how the events of a guest become a recording (scripts/kernel_order.py)."""

from __future__ import annotations

import pytest

from scripts import script

order = script("kernel_order")

EVENTS = """\
# tracer: nop
    load-140  [000] .N...  8.124552: insert: (dd_insert_requests+0x4/0x370) jiffies=4294894327
    load-140  [000] .N.1.  8.125244: block_rq_insert: 254,0 R 4096 () 1762720 + 8 be,0,4 [load]
    load-140  [000] .N...  8.126096: dispatch: (x <- dd_dispatch_request) jiffies=4294894327 request=0xff49
    load-141  [000] .N.1.  8.126100: block_rq_insert: 254,0 WS 4096 () 80 + 8 be,0,0 [load]
    load-140  [000] .N...  8.126506: block_rq_issue: 254,0 R 4096 () 1762720 + 8 be,0,4 [load]
    load-140  [000] .N...  8.126600: dispatch: (x <- dd_dispatch_request) jiffies=4294894328 request=0x0
  <idle>-0    [000] d.h1.  8.127751: block_rq_complete: 254,0 R () 1762720 + 8 be,0,4 [0]
    load-140  [000] .N...  8.127760: timer: (kyber_timer_fn+0x4/0x2c0) jiffies=4294894329
"""


def test_events_become_a_recording() -> None:
    recording = list(order.convert(order.CASES[0], EVENTS.splitlines()))
    assert recording == [
        "mq-deadline read_expire=100 write_expire=400 weights=40,80",
        "I 8125244 4294894327 R 1762720 8 0",
        "A 8126096 4294894327 1762720",
        "I 8126100 4294894327 W 80 8 1",
        "D 8126506 4294894327 1762720",
        "A 8126600 4294894328 -",
        "C 8127751 4294894328 1762720",
        "T 8127760 4294894329",
    ]


def test_an_unknown_event_is_refused() -> None:
    line = EVENTS.splitlines()[2].replace("+ 8", "and 8")
    with pytest.raises(order.OrderError, match="an event of unknown form"):
        list(order.convert(order.CASES[0], [line]))
