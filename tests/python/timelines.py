"""Timelines, read with Perfetto's own definitions."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

BEGIN, END, COUNTER = (
    pb.TrackEvent.TYPE_SLICE_BEGIN,
    pb.TrackEvent.TYPE_SLICE_END,
    pb.TrackEvent.TYPE_COUNTER,
)


@dataclass
class Slice:
    """One slice of a track: something that takes time."""

    track: int
    name: str
    category: str
    begin: int
    args: dict[str, Any]
    flows: list[int]
    end: int = -1
    inside: list[Slice] = field(default_factory=list)


class Trace:
    """A timeline, decoded as Perfetto does: in order of time, and then in the order of the file."""

    def __init__(self, path: Path) -> None:
        message = pb.Trace()
        message.ParseFromString(path.read_bytes())
        self.names: dict[int, str] = {}
        self.parents: dict[int, int] = {}
        self.slices: list[Slice] = []
        self.counters: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.last = 0
        texts: dict[str, dict[int, str]] = {}
        events = []
        for packet in message.packet:
            assert packet.trusted_packet_sequence_id == 1
            if packet.HasField("interned_data"):
                assert packet.sequence_flags == pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
                data = packet.interned_data
                for kind in ("event_names", "event_categories", "debug_annotation_names"):
                    texts[kind] = {entry.iid: entry.name for entry in getattr(data, kind)}
                values = data.debug_annotation_string_values
                texts["values"] = {entry.iid: entry.str.decode() for entry in values}
            elif packet.HasField("track_descriptor"):
                track = packet.track_descriptor
                assert track.uuid not in self.names
                assert not track.parent_uuid or track.parent_uuid in self.names
                self.names[track.uuid] = track.name
                self.parents[track.uuid] = track.parent_uuid
            else:
                assert packet.sequence_flags == pb.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
                events.append((packet.timestamp, packet.track_event))
        open_slices: dict[int, list[Slice]] = defaultdict(list)
        for time, event in sorted(events, key=lambda event: event[0]):
            self.last = max(self.last, time)
            if event.type == COUNTER:
                self.counters[self.names[event.track_uuid]].append((time, event.counter_value))
                continue
            stack = open_slices[event.track_uuid]
            args = {
                texts["debug_annotation_names"][note.name_iid]: texts["values"][note.string_value_iid]
                if note.string_value_iid
                else note.uint_value
                for note in event.debug_annotations
            }
            if event.type == BEGIN:
                [category] = event.category_iids
                name = event.name or texts["event_names"][event.name_iid]
                kind = texts["event_categories"][category]
                new = Slice(event.track_uuid, name, kind, time, args, list(event.flow_ids))
                if stack:
                    stack[-1].inside.append(new)
                stack.append(new)
            else:
                assert event.type == END
                ended = stack.pop()
                ended.end = time
                ended.args |= args
                if not stack:
                    self.slices.append(ended)
        assert not any(open_slices.values()), "every slice ends"

    def on(self, name: str) -> list[Slice]:
        """Returns the outermost slices of the tracks called `name`, in order of time."""
        found = [one for one in self.slices if self.names[one.track] == name]
        return sorted(found, key=lambda one: (one.begin, one.end))

    def check_no_overlap(self) -> None:
        """Checks that the slices of a track do not overlap, and that those within a slice do not either."""
        tracks = defaultdict(list)
        for one in self.slices:
            tracks[one.track].append(one)
        for slices in [*tracks.values(), *(one.inside for one in self.slices)]:
            slices.sort(key=lambda one: (one.begin, one.end))
            for before, after in pairwise(slices):
                assert before.end <= after.begin
