//! The values that arrive at a reader, and the end of their writer.

use std::fmt::Write;
use std::sync::Arc;

use bytemuck::Pod;
use talpf_primitives::{AtomicU32, Mutex, Ordering};

use super::buffers::Buffers;
use super::exchange::Back;
use super::message::{End, Message};
use crate::error::Error;
use crate::notification::{Listener, Notification, Notifications};
use crate::numbers::Rank;
use crate::operation::notify;
use crate::waiting_task::WaitingTask;

/// The writer is open.
const OPEN: u32 = 0;
const CLOSED: u32 = 1;
const LOST: u32 = 2;
/// No buffer is to be given back.
const NONE: u32 = u32::MAX;

/// The part of a reader that its writer knows: the writer itself if both are in this process,
/// otherwise the notifications that it sends.
pub(super) struct Arrivals<T> {
    pub(super) buffers: Buffers<T>,
    pub(super) notifications: Notifications,
    pub(super) task: WaitingTask,
    /// The writer, and the id of credits there.
    writer: (Rank, u32),
    /// The id of values here.
    id: u32,
    /// The buffer of the writer, until it takes it.
    back: Mutex<Option<Back>>,
    /// Number of the buffer that the writer may put to next, if it does not know.
    owed: AtomicU32,
    end: AtomicU32,
}

impl<T: Pod + Send + Sync> Arrivals<T> {
    pub(super) fn new(
        notifications: &Notifications,
        (buffers, back): (Buffers<T>, Back),
        writer: (Rank, u32),
        id: u32,
    ) -> Arc<Self> {
        Arc::new(Arrivals {
            buffers,
            notifications: notifications.clone(),
            task: WaitingTask::default(),
            writer,
            id,
            back: Mutex::new(Some(back)),
            owed: AtomicU32::new(NONE),
            end: AtomicU32::new(OPEN),
        })
    }

    /// Takes the buffer of the writer, for one in this process.
    pub(super) fn take_back(&self) -> Option<Back> {
        self.back.lock().take()
    }

    pub(super) fn writer(&self) -> Rank {
        self.writer.0
    }

    /// Returns the end of the writer, after which no value comes.
    pub(super) fn end(&self) -> Option<End> {
        match self.end.load(Ordering::Acquire) {
            OPEN => None,
            CLOSED => Some(End::Closed),
            _ => Some(End::Lost),
        }
    }

    /// Notes the end of the writer, whose last value has come.
    fn set_end(&self, end: End) {
        let end = if end == End::Closed { CLOSED } else { LOST };
        self.end.store(end, Ordering::Release);
    }

    /// Ends the values of a writer in this process.
    pub(super) fn end_directly(&self, end: End) {
        self.set_end(end);
        self.follow_up();
    }

    /// Wakes the reader after a change.
    #[inline]
    pub(super) fn wake(&self) {
        self.task.wake(&self.notifications.round().sender);
    }

    /// Takes in a message of the writer. `None` if it cannot have sent that.
    fn take_in(&self, notification: Notification) -> Option<()> {
        let message = Message::from_value(notification.value)?;
        if notification.source != self.writer.0 {
            return None;
        }
        match message {
            Message::Buffer(number) => {
                let mut back = self.back.lock();
                let back = back.as_mut().filter(|back| back.index() == number as usize)?;
                self.buffers.publish(back);
                self.owed.store(back.index() as u32, Ordering::Release);
            }
            Message::Ended(end) => self.set_end(end),
        }
        Some(())
    }
}

impl<T: Pod + Send + Sync> Listener for Arrivals<T> {
    fn take(&self, notification: Notification) -> bool {
        let Notification { source: rank, value, .. } = notification;
        if self.take_in(notification).is_none() {
            let what = format!("the value {value:#x} from the writer of a sampled value");
            let sender = &self.notifications.round().sender;
            sender.fail_soon(Error::BadControlMessage { rank, what });
        }
        true
    }

    /// Gives the writer the next buffer, and wakes the reader.
    fn follow_up(&self) {
        let owed = self.owed.swap(NONE, Ordering::AcqRel);
        if owed != NONE {
            let (writer, id) = self.writer;
            let value = Message::Buffer(owed).to_value();
            drop(notify(self.notifications.round(), writer, (id, value)));
        }
        if self.end().is_some() {
            self.notifications.remove_listener(self.id);
        }
        self.wake();
    }

    fn describe(&self, text: &mut String) {
        if self.task.is_announced() {
            let (rank, writer) = (self.notifications.rank(), self.writer());
            let _ = writeln!(text, "  {rank}: waits for a value that {writer} writes");
        }
    }
}
