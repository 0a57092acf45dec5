"""Counts slices and flows of a Perfetto file, and refuses one that is not consistent.

To run: python3 -m venv V && V/bin/pip install perfetto protobuf && V/bin/python count_in_perfetto.py FILE
"""

import collections
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

trace = pb.Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())

names, tracks = {}, {}
open_slices = collections.defaultdict(list)
begun, ended = set(), set()
slices = 0
events = []
for packet in trace.packet:
    for name in packet.interned_data.event_names:
        assert name.iid not in names, f"name {name.iid} twice"
        names[name.iid] = name.name
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        assert track.uuid not in tracks, f"track {track.uuid} twice"
        assert not track.HasField("parent_uuid") or track.parent_uuid in tracks
        tracks[track.uuid] = track
    if packet.HasField("track_event"):
        event = packet.track_event
        assert event.track_uuid in tracks, f"no track {event.track_uuid}"
        assert not event.name_iid or event.name_iid in names, f"no name {event.name_iid}"
        events.append((packet.timestamp, event))

for time, event in sorted(events, key=lambda pair: pair[0]):
    if event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
        open_slices[event.track_uuid].append(time)
        slices += 1
    elif event.type == pb.TrackEvent.TYPE_SLICE_END:
        assert open_slices[event.track_uuid].pop() <= time
    elif event.type == pb.TrackEvent.TYPE_COUNTER:
        assert tracks[event.track_uuid].HasField("counter")
    begun.update(event.flow_ids)
    for flow in event.terminating_flow_ids:
        assert flow in begun, f"flow {flow} ends before it begins"
        ended.add(flow)

assert begun == ended
assert not any(open_slices.values()), "a slice does not end"
print(f"{slices} slices, {len(ended)} flows")
