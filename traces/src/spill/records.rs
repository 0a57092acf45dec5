//! Records in a spill file: time, number of the kind, fields.

use super::fields::{Fields, put_u32, put_u64};
use crate::event::Record;
use crate::{Event, LabelId, MessageKind, State, SyncMode, ValueKind, WaitNs};

/// Number that stands for an unknown number of arrivals.
const UNKNOWN: u32 = u32::MAX;

/// Appends a record.
pub(super) fn put(out: &mut Vec<u8>, record: &Record) {
    put_u64(out, record.time_ns);
    match record.event {
        Event::TaskSlice { starts, rank, task, label, began_ns } => {
            out.extend_from_slice(&[0, starts.into()]);
            put_u32(out, rank);
            put_u64(out, task);
            put_u32(out, label.index() as u32);
            put_u64(out, began_ns);
        }
        Event::StateSlice { state, began_ns } => {
            out.extend_from_slice(&[1, state.number() as u8]);
            put_u64(out, began_ns);
        }
        Event::Idle { began_ns, ready } => {
            out.push(2);
            put_u64(out, began_ns);
            put_u32(out, ready);
        }
        Event::Throttle { rank, waits } => {
            out.extend_from_slice(&[3, waits.into()]);
            put_u32(out, rank);
        }
        Event::SyncBegin { rank, lane, round, mode, expected } => {
            out.extend_from_slice(&[4, mode.number() as u8]);
            put_u32(out, rank);
            put_u32(out, lane);
            put_u64(out, round);
            out.push(expected.is_some().into());
            put_u32(out, expected.unwrap_or(UNKNOWN));
        }
        Event::SyncEnd { rank, lane, round, posted, arrived } => {
            out.push(5);
            put_u32(out, rank);
            put_u32(out, lane);
            put_u64(out, round);
            put_u32(out, posted.bits());
            put_u32(out, arrived.bits());
        }
        Event::Send { kind, rank, peer, message, bytes, waited } => {
            out.extend_from_slice(&[6, kind.number() as u8]);
            put_u32(out, rank);
            put_u32(out, peer);
            put_u64(out, message);
            put_u64(out, bytes);
            put_u32(out, waited.bits());
        }
        Event::Receive { rank, peer, message, lane, round } => {
            out.push(7);
            put_u32(out, rank);
            put_u32(out, peer);
            put_u64(out, message);
            put_u32(out, lane);
            put_u64(out, round);
        }
        Event::ReceiveTagged { rank, peer, message, tag, arrived } => {
            out.push(8);
            put_u32(out, rank);
            put_u32(out, peer);
            put_u64(out, message);
            put_u32(out, tag);
            put_u32(out, arrived.bits());
        }
        Event::Value { rank, kind, value } => {
            out.extend_from_slice(&[9, kind as u8]);
            put_u32(out, rank);
            put_u64(out, value.cast_unsigned());
        }
        Event::ReceiveControl { kind, rank, peer, message, lane, round } => {
            out.extend_from_slice(&[15, kind.number() as u8]);
            put_u32(out, rank);
            put_u32(out, peer);
            put_u64(out, message);
            put_u32(out, lane);
            put_u64(out, round);
        }
        Event::RecordingStopped => out.push(10),
        Event::SpanSlice { label, began_ns } => {
            out.push(11);
            put_u32(out, label.index() as u32);
            put_u64(out, began_ns);
        }
        Event::Mark { label } => {
            out.push(12);
            put_u32(out, label.index() as u32);
        }
        Event::Counter { label, value } => {
            out.push(13);
            put_u32(out, label.index() as u32);
            put_u64(out, value.cast_unsigned());
        }
        Event::Ready { rank, task, by } => {
            out.push(14);
            put_u32(out, rank);
            put_u64(out, task);
            put_u64(out, by);
        }
    }
}

/// Reads a record; `None` if the fields are of no record.
pub(super) fn get(fields: &mut Fields<'_>) -> Option<Record> {
    let time_ns = fields.u64()?;
    let event = match fields.u8()? {
        0 => {
            let starts = fields.bool()?;
            let (rank, task) = (fields.u32()?, fields.u64()?);
            let label = LabelId::of(fields.u32()?);
            Event::TaskSlice { starts, rank, task, label, began_ns: fields.u64()? }
        }
        1 => {
            let number = u32::from(fields.u8()?);
            let state = State::ALL.into_iter().find(|state| state.number() == number)?;
            Event::StateSlice { state, began_ns: fields.u64()? }
        }
        2 => Event::Idle { began_ns: fields.u64()?, ready: fields.u32()? },
        3 => {
            let waits = fields.bool()?;
            Event::Throttle { rank: fields.u32()?, waits }
        }
        4 => {
            let number = i64::from(fields.u8()?);
            let mode = SyncMode::all().find(|mode| mode.number() == number)?;
            let (rank, lane, round) = (fields.u32()?, fields.u32()?, fields.u64()?);
            let (is_known, expected) = (fields.bool()?, fields.u32()?);
            let expected = is_known.then_some(expected);
            Event::SyncBegin { rank, lane, round, mode, expected }
        }
        5 => Event::SyncEnd {
            rank: fields.u32()?,
            lane: fields.u32()?,
            round: fields.u64()?,
            posted: WaitNs::from_bits(fields.u32()?),
            arrived: WaitNs::from_bits(fields.u32()?),
        },
        6 => {
            let number = i64::from(fields.u8()?);
            Event::Send {
                kind: MessageKind::of(number)?,
                rank: fields.u32()?,
                peer: fields.u32()?,
                message: fields.u64()?,
                bytes: fields.u64()?,
                waited: WaitNs::from_bits(fields.u32()?),
            }
        }
        7 => Event::Receive {
            rank: fields.u32()?,
            peer: fields.u32()?,
            message: fields.u64()?,
            lane: fields.u32()?,
            round: fields.u64()?,
        },
        8 => Event::ReceiveTagged {
            rank: fields.u32()?,
            peer: fields.u32()?,
            message: fields.u64()?,
            tag: fields.u32()?,
            arrived: WaitNs::from_bits(fields.u32()?),
        },
        9 => {
            let number = fields.u8()?;
            let kind = ValueKind::ALL.into_iter().find(|kind| *kind as u8 == number)?;
            Event::Value { rank: fields.u32()?, kind, value: fields.u64()?.cast_signed() }
        }
        10 => Event::RecordingStopped,
        11 => Event::SpanSlice { label: LabelId::of(fields.u32()?), began_ns: fields.u64()? },
        12 => Event::Mark { label: LabelId::of(fields.u32()?) },
        13 => {
            Event::Counter { label: LabelId::of(fields.u32()?), value: fields.u64()?.cast_signed() }
        }
        14 => Event::Ready { rank: fields.u32()?, task: fields.u64()?, by: fields.u64()? },
        15 => {
            let number = i64::from(fields.u8()?);
            Event::ReceiveControl {
                kind: MessageKind::of(number)?,
                rank: fields.u32()?,
                peer: fields.u32()?,
                message: fields.u64()?,
                lane: fields.u32()?,
                round: fields.u64()?,
            }
        }
        _ => return None,
    };
    Some(Record { time_ns, event })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_comes_back() {
        let (rank, peer, message, lane, round, wait) =
            (1, 2, u64::MAX, 3, 4, WaitNs::between(0, 5_000_000_000));
        let mut events = vec![
            Event::TaskSlice { starts: true, rank, task: 9, label: LabelId::of(7), began_ns: 1 },
            Event::Idle { began_ns: 5, ready: 6 },
            Event::Throttle { rank, waits: true },
            Event::Ready { rank, task: 9, by: 8 },
            Event::SyncEnd { rank, lane, round, posted: wait, arrived: WaitNs::default() },
            Event::Receive { rank, peer, message, lane, round },
            Event::ReceiveTagged { rank, peer, message, tag: 8, arrived: wait },
            Event::RecordingStopped,
            Event::SpanSlice { label: LabelId::of(7), began_ns: 2 },
            Event::Mark { label: LabelId::of(8) },
            Event::Counter { label: LabelId::of(9), value: i64::MIN },
        ];
        events.extend(State::ALL.map(|state| Event::StateSlice { state, began_ns: 3 }));
        events.extend(ValueKind::ALL.map(|kind| Event::Value { rank, kind, value: -7 }));
        events.extend(MessageKind::ALL.map(|kind| Event::Send {
            kind,
            rank,
            peer,
            message,
            bytes: 10,
            waited: wait,
        }));
        events.extend(MessageKind::ALL.map(|kind| Event::ReceiveControl {
            kind,
            rank,
            peer,
            message,
            lane,
            round,
        }));
        for expected in [None, Some(0), Some(u32::MAX)] {
            events.extend(SyncMode::all().map(|mode| Event::SyncBegin {
                rank,
                lane,
                round,
                mode,
                expected,
            }));
        }
        for event in events {
            let mut bytes = Vec::new();
            put(&mut bytes, &Record { time_ns: 77, event });
            let mut fields = Fields::new(&bytes);
            let record = get(&mut fields).unwrap();
            assert_eq!((record.time_ns, record.event), (77, event));
            assert!(fields.is_empty());
            for len in 0..bytes.len() {
                assert!(get(&mut Fields::new(&bytes[..len])).is_none(), "{event:?}");
            }
        }
    }

    #[test]
    fn bytes_of_no_event_are_refused() {
        for byte in 16..=u8::MAX {
            let mut bytes = vec![0; 64];
            bytes[8] = byte;
            assert!(get(&mut Fields::new(&bytes)).is_none());
        }
    }
}
