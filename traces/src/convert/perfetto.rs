//! Protobuf of Perfetto.
//!
//! A process for each rank, a thread for each row with its tasks, and tracks below it for states,
//! messages, control messages and counters. A message is two instants with the same flow. Names are sent once. The
//! messages are the part of `perfetto_trace.proto` that is used, with its numbers.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};

use prost::Message as _;

use super::sequence::{Form, Row};
use crate::MessageKind;
use crate::paraver::Communication;

const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const INSTANT: i32 = 3;
const COUNTER: i32 = 4;

/// All packets are of one writer, whose first one begins a new table of names.
const SEQUENCE: u32 = 1;
const NEW_NAMES: u32 = 1;
const NEEDS_NAMES: u32 = 2;

/// Largest number of names that are sent once and kept; those beyond are part of each event.
const NAMES: usize = 1 << 16;

#[derive(Clone, PartialEq, prost::Message)]
struct Packet {
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, tag = "10")]
    trusted_packet_sequence_id: u32,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TrackEvent {
    #[prost(int32, optional, tag = "9")]
    kind: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    counter_value: Option<i64>,
    #[prost(fixed64, repeated, tag = "47")]
    flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, tag = "48")]
    terminating_flow_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct InternedData {
    #[prost(message, repeated, tag = "2")]
    event_names: Vec<EventName>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct EventName {
    #[prost(uint64, tag = "1")]
    iid: u64,
    #[prost(string, tag = "2")]
    name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TrackDescriptor {
    #[prost(uint64, tag = "1")]
    uuid: u64,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(message, optional, tag = "3")]
    process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    counter: Option<CounterDescriptor>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ProcessDescriptor {
    #[prost(int32, tag = "1")]
    pid: i32,
    #[prost(string, tag = "6")]
    process_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ThreadDescriptor {
    #[prost(int32, tag = "1")]
    pid: i32,
    #[prost(int64, tag = "2")]
    tid: i64,
    #[prost(string, tag = "5")]
    thread_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct CounterDescriptor {}

/// Tracks of a row beside its counters.
#[derive(Clone, Copy)]
enum Track {
    Tasks,
    States,
    Messages,
    Control,
}

impl Track {
    fn of(self, row: usize) -> u64 {
        (row as u64 + 1) * 4 + self as u64
    }
}

pub(super) struct Perfetto<W> {
    out: W,
    names: HashMap<String, u64>,
    counters: BTreeMap<(usize, u32), u64>,
    /// Tracks beside those of tasks that have been declared.
    declared: HashSet<u64>,
    /// Number of tracks given away.
    tracks: u64,
    begun: bool,
    buffer: Vec<u8>,
}

impl<W: Write> Perfetto<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            names: HashMap::new(),
            counters: BTreeMap::new(),
            declared: HashSet::new(),
            tracks: 0,
            begun: false,
            buffer: Vec::new(),
        }
    }

    /// Writes a packet as an element of the list that the file is.
    fn packet(&mut self, mut packet: Packet) -> io::Result<()> {
        let is_first = !std::mem::replace(&mut self.begun, true);
        packet.trusted_packet_sequence_id = SEQUENCE;
        packet.sequence_flags = Some(if is_first { NEW_NAMES | NEEDS_NAMES } else { NEEDS_NAMES });
        self.buffer.clear();
        // Field 1, with a length.
        self.buffer.push(0x0a);
        packet.encode_length_delimited(&mut self.buffer).map_err(io::Error::other)?;
        self.out.write_all(&self.buffer)
    }

    fn descriptor(&mut self, descriptor: TrackDescriptor) -> io::Result<()> {
        self.packet(Packet { track_descriptor: Some(descriptor), ..Packet::default() })
    }

    fn event(&mut self, time_ns: u64, name: Option<&str>, mut event: TrackEvent) -> io::Result<()> {
        let mut interned_data = None;
        if let Some(name) = name {
            match self.names.get(name) {
                Some(iid) => event.name_iid = Some(*iid),
                None if self.names.len() == NAMES => event.name = Some(name.to_owned()),
                None => {
                    let iid = self.names.len() as u64 + 1;
                    self.names.insert(name.to_owned(), iid);
                    let event_names = vec![EventName { iid, name: name.to_owned() }];
                    interned_data = Some(InternedData { event_names });
                    event.name_iid = Some(iid);
                }
            }
        }
        let (timestamp, track_event) = (Some(time_ns), Some(event));
        self.packet(Packet { timestamp, track_event, interned_data, ..Packet::default() })
    }

    fn slice(&mut self, kind: i32, track: u64, name: Option<&str>, time_ns: u64) -> io::Result<()> {
        let event =
            TrackEvent { kind: Some(kind), track_uuid: Some(track), ..TrackEvent::default() };
        self.event(time_ns, name, event)
    }

    /// Returns a track of a row, which is declared when it is first used.
    fn track(&mut self, row: usize, track: Track, name: &str) -> io::Result<u64> {
        let uuid = track.of(row);
        if self.declared.insert(uuid) {
            self.descriptor(TrackDescriptor {
                uuid,
                name: Some(name.to_owned()),
                parent_uuid: Some(Track::Tasks.of(row)),
                ..TrackDescriptor::default()
            })?;
        }
        Ok(uuid)
    }
}

impl<W: Write> Form for Perfetto<W> {
    fn begin(&mut self, rows: &[Row]) -> io::Result<()> {
        self.tracks = Track::Tasks.of(rows.len());
        let mut ranks = HashSet::new();
        for Row { index, rank, name } in rows {
            let pid = *rank as i32 + 1;
            if ranks.insert(rank) {
                let process = ProcessDescriptor { pid, process_name: format!("rank {rank}") };
                let uuid = self.tracks;
                self.tracks += 1;
                let process = Some(process);
                self.descriptor(TrackDescriptor { uuid, process, ..TrackDescriptor::default() })?;
            }
            let tid = *index as i64 + 1_000_000;
            let thread = Some(ThreadDescriptor { pid, tid, thread_name: name.clone() });
            let uuid = Track::Tasks.of(*index);
            self.descriptor(TrackDescriptor { uuid, thread, ..TrackDescriptor::default() })?;
        }
        Ok(())
    }

    fn begin_task(&mut self, row: usize, name: &str, time_ns: u64) -> io::Result<()> {
        self.slice(SLICE_BEGIN, Track::Tasks.of(row), Some(name), time_ns)
    }

    fn end_task(&mut self, row: usize, time_ns: u64) -> io::Result<()> {
        self.slice(SLICE_END, Track::Tasks.of(row), None, time_ns)
    }

    fn state(&mut self, row: usize, name: &str, begin_ns: u64, end_ns: u64) -> io::Result<()> {
        let track = self.track(row, Track::States, "state")?;
        self.slice(SLICE_BEGIN, track, Some(name), begin_ns)?;
        self.slice(SLICE_END, track, None, end_ns)
    }

    fn counter(
        &mut self,
        row: usize,
        (kind, name): (u32, &str),
        value: i64,
        time_ns: u64,
    ) -> io::Result<()> {
        let uuid = match self.counters.get(&(row, kind)) {
            Some(uuid) => *uuid,
            None => {
                let uuid = self.tracks;
                self.tracks += 1;
                self.counters.insert((row, kind), uuid);
                self.descriptor(TrackDescriptor {
                    uuid,
                    name: Some(name.to_owned()),
                    parent_uuid: Some(Track::Tasks.of(row)),
                    counter: Some(CounterDescriptor {}),
                    ..TrackDescriptor::default()
                })?;
                uuid
            }
        };
        let event = TrackEvent {
            kind: Some(COUNTER),
            track_uuid: Some(uuid),
            counter_value: Some(value),
            ..TrackEvent::default()
        };
        self.event(time_ns, None, event)
    }

    fn message(&mut self, number: u64, message: &Communication) -> io::Result<()> {
        let &Communication { sender, receiver, send_ns, receive_ns, .. } = message;
        let control = message.control().map(MessageKind::name);
        let (track, name) = match control {
            None => (Track::Messages, "messages"),
            Some(_) => (Track::Control, "control messages"),
        };
        let [from, to] = [sender, receiver].map(|row| self.track(row, track, name));
        let sent = TrackEvent {
            kind: Some(INSTANT),
            track_uuid: Some(from?),
            flow_ids: vec![number],
            ..TrackEvent::default()
        };
        self.event(send_ns, Some(control.unwrap_or("send")), sent)?;
        let received = TrackEvent {
            kind: Some(INSTANT),
            track_uuid: Some(to?),
            terminating_flow_ids: vec![number],
            ..TrackEvent::default()
        };
        self.event(receive_ns, Some(control.unwrap_or("receive")), received)
    }

    fn end(&mut self, _lost: &[String]) -> io::Result<()> {
        Ok(())
    }
}
