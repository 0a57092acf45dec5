//! Outgoing packets: queued under gates, and given to the rail under none.
//!
//! The packets for a process form a stream of bytes, each with its length before it. The stream is
//! cut into messages of the rail: short packets share a message, and a long one has several. Memory
//! of messages that were sent is used again.
//!
//! Messages for a process are given to the rail in order, by one thread at a time. A thread that queues
//! a packet meanwhile leaves it to that one, which checks again before it ends, unless the rail has no room.
//!
//! Fields that threads read without the lock are changed under it.

use std::collections::VecDeque;

use talpf_primitives::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering};

use super::{LENGTH_BYTES, Packet};
use crate::{Rail, RailError, callback, checked::Checked, queue_pair::LocalBuffer};

/// Most bytes of a message.
const MESSAGE_BYTES: usize = 64 << 10;
/// Most messages for a process that are kept to be used again.
const KEPT: usize = 64;

/// Packets for each process that the rail has not taken.
pub(super) struct Outgoing {
    streams: Box<[Stream]>,
    message_bytes: usize,
}

struct Stream {
    queue: Mutex<Queue>,
    /// Set while there may be packets for a thread to send.
    has_queued: AtomicBool,
    /// Packets ever queued.
    packets: AtomicU64,
    /// Bytes of the queued messages, and of the one that is being sent.
    bytes: AtomicU64,
    /// Set once the rail has panicked with a message, which may be missing.
    has_panicked: AtomicBool,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<Vec<u8>>,
    /// Memory for further messages.
    free: Vec<Vec<u8>>,
    /// Set while a thread gives messages to the rail.
    is_flushed: bool,
    is_lost: bool,
}

impl Outgoing {
    pub(super) fn new(rail: &dyn Rail) -> Self {
        let stream = |_| Stream {
            queue: Mutex::default(),
            has_queued: AtomicBool::new(false),
            packets: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            has_panicked: AtomicBool::new(false),
        };
        let streams = (0..rail.processes()).map(stream).collect();
        Self { streams, message_bytes: rail.limits().eager_bytes.min(MESSAGE_BYTES) }
    }

    /// Queues a packet, whose payload is followed by the data of `more`. Calls nobody.
    pub(super) fn push(&self, to: u32, packet: &Packet<'_>, more: Option<LocalBuffer<'_>>) {
        let stream = &self.streams[to as usize];
        let data = more.map_or(0, |more| more.len() as usize);
        stream.push(&mut stream.queue.lock(), packet, data, self.message_bytes, |writer| {
            if let Some(more) = more {
                more.for_each_piece(|piece| writer.write_memory(piece));
            }
        });
    }

    /// Queues a datagram, the bytes of `pieces`, and gives all that is queued for the process to the rail. Returns
    /// `false` if that has not taken some. The caller holds no gate and no lock.
    pub(super) fn send_datagram(&self, to: u32, pieces: &[&[u8]], rail: &dyn Rail) -> bool {
        let stream = &self.streams[to as usize];
        let mut queue = stream.queue.lock();
        let data = pieces.iter().map(|piece| piece.len()).sum();
        stream.push(&mut queue, &Packet::Datagram(&[]), data, self.message_bytes, |writer| {
            pieces.iter().for_each(|piece| writer.write(piece));
        });
        stream.flush(queue, to, rail)
    }

    /// Returns the bytes that are queued for a process.
    pub(super) fn bytes(&self, to: u32) -> u64 {
        self.streams[to as usize].bytes.load(Ordering::Acquire)
    }

    /// Returns the number of packets that were ever queued for a process.
    pub(super) fn packets(&self, to: u32) -> u64 {
        self.streams.get(to as usize).map_or(0, |stream| stream.packets.load(Ordering::Acquire))
    }

    /// Returns `true` if nothing is queued, except for processes that `is_left_out` is `true` for, and no panic of
    /// the rail is to be noticed. A thread that queues a packet later, or that calls the rail, sees all that the
    /// caller has done before.
    pub(super) fn is_settled(&self, is_left_out: impl Fn(u32) -> bool) -> bool {
        (0..).zip(&self.streams).all(|(process, stream)| {
            let _queue = stream.queue.lock();
            !stream.has_panicked.load(Ordering::Relaxed)
                && (stream.bytes.load(Ordering::Relaxed) == 0 || is_left_out(process))
        })
    }

    /// Drops what is queued for a process that is lost, and all later packets.
    pub(super) fn lose(&self, process: u32) {
        let stream = &self.streams[process as usize];
        let mut queue = stream.queue.lock();
        queue.is_lost = true;
        stream.bytes.store(0, Ordering::Release);
        let dropped = std::mem::take(&mut queue.messages);
        drop(queue);
        drop(dropped);
    }

    /// Gives queued packets to the rail. Returns `false` if that has not taken some. The caller holds
    /// no gate and no lock.
    pub(super) fn flush(&self, rail: &dyn Rail) -> bool {
        let mut is_taken = true;
        for (to, stream) in self.streams.iter().enumerate() {
            // A thread that has queued a packet sees the flag, or that another one has sent the packet.
            if stream.has_queued.load(Ordering::Acquire) {
                is_taken &= stream.flush(stream.queue.lock(), to as u32, rail);
            }
        }
        is_taken
    }

    /// Returns `true` if the rail has panicked with a message for a process, once.
    pub(super) fn has_panicked(&self, process: u32) -> bool {
        let has_panicked = &self.streams[process as usize].has_panicked;
        has_panicked.load(Ordering::Acquire) && has_panicked.swap(false, Ordering::AcqRel)
    }
}

impl Stream {
    /// Queues a packet, whose payload is followed by `data` bytes that `write_data` writes.
    fn push(
        &self,
        queue: &mut Queue,
        packet: &Packet<'_>,
        data: usize,
        message_bytes: usize,
        write_data: impl FnOnce(&mut Writer<'_>),
    ) {
        let (head, payload) = (packet.head(), packet.payload());
        let length = head.as_bytes().len() + payload.len() + data;
        let packets = self.packets.load(Ordering::Relaxed) + 1;
        self.packets.store(packets, Ordering::Release);
        if queue.is_lost {
            return;
        }
        let mut writer = Writer { queue, message_bytes };
        // A short packet lies in one message as a whole.
        writer.room((LENGTH_BYTES + length).min(message_bytes));
        writer.write(&(length as u32).to_le_bytes());
        writer.write(head.as_bytes());
        writer.write(payload);
        write_data(&mut writer);
        let bytes = self.bytes.load(Ordering::Relaxed) + (LENGTH_BYTES + length) as u64;
        self.bytes.store(bytes, Ordering::Release);
        self.has_queued.store(true, Ordering::Release);
    }

    /// Gives queued messages to the rail until it has no room, unless another thread does so.
    /// Returns `false` if the rail has not taken some.
    fn flush<'s>(&'s self, mut queue: MutexGuard<'s, Queue>, to: u32, rail: &dyn Rail) -> bool {
        if queue.is_flushed {
            return true;
        }
        let mut is_taken = true;
        while let Some(message) = queue.messages.pop_front() {
            queue.is_flushed = true;
            drop(queue);
            let sent = callback::call("the send of a rail", || rail.send(to, &message));
            queue = self.queue.lock();
            match sent {
                Some(Err(RailError::NoRoom { .. })) => {
                    queue.messages.push_front(message);
                    queue.is_flushed = false;
                    return false;
                }
                // The loss of a process is an event of the rail.
                Some(outcome) => is_taken &= outcome.is_ok(),
                None => {
                    self.keep(&mut queue, message);
                    queue.is_flushed = false;
                    self.has_panicked.store(true, Ordering::Release);
                    return false;
                }
            }
            self.keep(&mut queue, message);
        }
        queue.is_flushed = false;
        self.has_queued.store(false, Ordering::Release);
        is_taken
    }

    /// Keeps the memory of a message that was sent.
    fn keep(&self, queue: &mut Queue, mut message: Vec<u8>) {
        let bytes = self.bytes.load(Ordering::Relaxed).saturating_sub(message.len() as u64);
        self.bytes.store(bytes, Ordering::Release);
        if queue.free.len() < KEPT {
            message.clear();
            queue.free.push(message);
        }
    }
}

/// Writer of one packet.
struct Writer<'a> {
    queue: &'a mut Queue,
    message_bytes: usize,
}

impl Writer<'_> {
    /// Returns the last message, which has room for `bytes` more.
    fn room(&mut self, bytes: usize) -> &mut Vec<u8> {
        let limit = self.message_bytes;
        let Queue { messages, free, .. } = &mut *self.queue;
        if messages.back().is_none_or(|last| limit - last.len() < bytes) {
            messages.push_back(free.pop().unwrap_or_else(|| Vec::with_capacity(limit)));
        }
        // Just made, if there was none.
        let last = messages.len() - 1;
        &mut messages[last]
    }

    fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let limit = self.message_bytes;
            let message = self.room(1);
            let (now, later) = bytes.split_at(bytes.len().min(limit - message.len()));
            message.extend_from_slice(now);
            bytes = later;
        }
    }

    fn write_memory(&mut self, mut piece: Checked<'_>) {
        while piece.len() > 0 {
            let limit = self.message_bytes;
            // A word is read in one access.
            let message = self.room(if piece.len() == WORD { WORD } else { 1 });
            let (now, later) = piece.split_at(limit - message.len());
            now.append_to(message);
            piece = later;
        }
    }
}

const WORD: usize = size_of::<u64>();
