//! The writing end of a sampled value.

use std::fmt;
use std::sync::Arc;
use std::thread;

use bytemuck::Pod;

use super::arrivals::Arrivals;
use super::exchange::Back;
use super::message::End;
use super::outgoing::Outgoing;
use crate::error::{EndError, Error};
use crate::notification::Notifications;

/// The writing end of a [`SampledValue`](crate::SampledValue).
///
/// **Completion**: a reader of this process has the value when [`SampleWriter::write`] returns. One of
/// another process gets it as soon as the value before has arrived there and no later one was
/// written. A writer that is dropped ends the streams of its readers once they have its last value;
/// one that is dropped by a panic makes them fail.
pub struct SampleWriter<T: Pod + Send + Sync> {
    notifications: Notifications,
    /// Readers of this process, with the buffer of each that this end has.
    direct: Vec<(Arc<Arrivals<T>>, Back)>,
    outgoing: Arc<Outgoing<T>>,
}

impl<T: Pod + Send + Sync> SampleWriter<T> {
    pub(super) fn new(
        notifications: &Notifications,
        direct: Vec<(Arc<Arrivals<T>>, Back)>,
        outgoing: Arc<Outgoing<T>>,
    ) -> Self {
        SampleWriter { notifications: notifications.clone(), direct, outgoing }
    }

    /// Writes the value of all readers. Never waits.
    ///
    /// **Errors**: a run that has failed ([`EndError::Failed`]) or ended.
    /// **Cost**: a copy for each reader of this process; a message for each other one to which none
    /// is under way.
    pub fn write(&mut self, value: T) -> Result<(), Error> {
        let sender = &self.notifications.round().sender;
        if sender.has_failed()
            && let Some(error) = sender.error()
        {
            let rank = self.notifications.rank();
            return Err(EndError::of_run(rank, "writer of a sampled value", error));
        }
        for (arrivals, back) in &mut self.direct {
            arrivals.buffers.write(back, value);
            arrivals.wake();
        }
        self.outgoing.write(value);
        Ok(())
    }
}

impl<T: Pod + Send + Sync> Drop for SampleWriter<T> {
    fn drop(&mut self) {
        let end = if thread::panicking() { End::Lost } else { End::Closed };
        for (arrivals, _) in &self.direct {
            arrivals.end_directly(end);
        }
        self.outgoing.end(end);
    }
}

impl<T: Pod + Send + Sync> fmt::Debug for SampleWriter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SampleWriter of {}", self.notifications.rank())
    }
}
