//! Values on their way to readers that the device reaches: in other processes, and all of a run in
//! virtual time or with a trace.

use std::sync::Arc;

use bytemuck::Pod;
use talpf_primitives::{AtomicUsize, Mutex, Ordering};
use talpf_runtime::ByteLayout;

use super::exchange::FIRST_BACK;
use super::message::{End, Message};
use crate::endpoint::INLINE_BYTES;
use crate::error::Error;
use crate::notification::{Listener, Notification, Notifications};
use crate::numbers::Rank;
use crate::operation::{Source, notify, put_copy_notified, put_notified};
use crate::registration::Registration;
use crate::slot::MemorySlot;

/// The way to each reader. It lives until the last value and the end were sent, longer than its
/// writer perhaps.
pub(super) struct Outgoing<T> {
    notifications: Notifications,
    slot: MemorySlot<T>,
    _registration: Arc<Registration>,
    /// The id of credits here.
    id: u32,
    /// By rank.
    readers: Vec<Reader<T>>,
    /// Readers that have given a buffer back, by their places.
    due: Mutex<Vec<usize>>,
    /// Number of readers to which the end was not sent.
    open: AtomicUsize,
}

/// A reader, and what is on its way there.
struct Reader<T> {
    rank: Rank,
    /// The id of values there.
    id: u32,
    state: Mutex<State<T>>,
}

struct State<T> {
    /// The buffer that may be put to, unless a put is under way.
    back: Option<u32>,
    /// The latest value, if it waits for a buffer.
    value: Option<T>,
    end: Option<End>,
}

/// The next message to a reader.
enum Next<T> {
    Put(u32, T),
    End(End),
}

impl<T: Copy> State<T> {
    fn next(&mut self) -> Option<Next<T>> {
        let back = self.back?;
        let next = match self.value.take() {
            Some(value) => Next::Put(back, value),
            None => Next::End(self.end.take()?),
        };
        self.back = None;
        Some(next)
    }
}

impl<T: Pod + Send + Sync> Outgoing<T> {
    /// Makes the way to `readers`, each with its id of values.
    pub(super) fn new(
        notifications: &Notifications,
        (slot, registration): (&MemorySlot<T>, &Arc<Registration>),
        id: u32,
        readers: Vec<(Rank, u32)>,
    ) -> Arc<Self> {
        let open = AtomicUsize::new(readers.len());
        let reader = |(rank, id)| {
            let state = State { back: Some(FIRST_BACK), value: None, end: None };
            Reader { rank, id, state: Mutex::new(state) }
        };
        let readers = readers.into_iter().map(reader).collect();
        let (notifications, slot) = (notifications.clone(), slot.clone());
        let (registration, due) = (Arc::clone(registration), Mutex::default());
        Arc::new(Outgoing {
            notifications,
            slot,
            _registration: registration,
            id,
            readers,
            due,
            open,
        })
    }

    /// Returns `true` if there are no such readers.
    pub(super) fn is_empty(&self) -> bool {
        self.readers.is_empty()
    }

    /// Sends a value to every reader, in place of one that waits.
    pub(super) fn write(&self, value: T) {
        self.change_each(|state| state.value = Some(value));
    }

    /// Ends the values, after the last one.
    pub(super) fn end(&self, end: End) {
        self.change_each(|state| state.end = Some(end));
    }

    fn change_each(&self, change: impl Fn(&mut State<T>)) {
        for reader in &self.readers {
            let mut state = reader.state.lock();
            change(&mut state);
            let next = state.next();
            drop(state);
            next.into_iter().for_each(|next| self.send(reader, next));
        }
    }

    fn send(&self, reader: &Reader<T>, next: Next<T>) {
        let round = self.notifications.round();
        match next {
            // Posted or queued, within the one buffer of the reader.
            Next::Put(number, value) => {
                let to = self.slot.at(reader.rank, number as usize);
                let notified = (reader.id, Message::Buffer(number).to_value());
                let longest = INLINE_BYTES.min(round.sender.own.endpoint.max_transfer);
                if size_of::<T>() <= longest {
                    drop(put_copy_notified(round, &[value], to, notified));
                } else {
                    drop(put_notified(round, Copied(Box::new(value)), to, notified));
                }
            }
            Next::End(end) => {
                let value = Message::Ended(end).to_value();
                drop(notify(round, reader.rank, (reader.id, value)));
                if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
                    self.notifications.remove_listener(self.id);
                }
            }
        }
    }

    /// Takes in the credit of a reader. `None` if it cannot have sent that.
    fn take_in(&self, notification: Notification) -> Option<()> {
        let Notification { source, value, .. } = notification;
        let place = self.readers.binary_search_by_key(&source, |reader| reader.rank).ok()?;
        let Some(Message::Buffer(number)) = Message::from_value(value) else { return None };
        let mut state = self.readers[place].state.lock();
        if state.back.replace(number).is_some() {
            return None;
        }
        drop(state);
        self.due.lock().push(place);
        Some(())
    }
}

impl<T: Pod + Send + Sync> Listener for Outgoing<T> {
    fn take(&self, notification: Notification) -> bool {
        let Notification { source: rank, value, .. } = notification;
        if self.take_in(notification).is_none() {
            let what = format!("the value {value:#x} from the reader of a sampled value");
            let sender = &self.notifications.round().sender;
            sender.fail_soon(Error::BadControlMessage { rank, what });
        }
        true
    }

    fn follow_up(&self) {
        loop {
            let Some(place) = self.due.lock().pop() else { return };
            let reader = &self.readers[place];
            let next = reader.state.lock().next();
            next.into_iter().for_each(|next| self.send(reader, next));
        }
    }

    fn describe(&self, _text: &mut String) {}
}

/// A value that an operation owns.
struct Copied<T>(Box<T>);

impl<T: Pod + Send + Sync> Source for Copied<T> {
    type Element = T;

    fn layout(&self) -> ByteLayout {
        // Operations read their source.
        let first = std::ptr::from_ref(&*self.0).cast_mut().cast();
        ByteLayout { first, rows: 1, row_bytes: size_of::<T>(), stride_bytes: 0, len: 1 }
    }

    /// Returns a number that no array has.
    fn array(&self) -> u64 {
        u64::MAX
    }
}
