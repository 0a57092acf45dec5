//! The completions of the sends of one rank.
//!
//! Every send queue has room for its requests in a completion queue, since in the error state each
//! of them leaves a completion. A rank does not know at the start with how many others it will
//! communicate, and a completion queue has a fixed size. So the first few queue pairs share one,
//! the next twice as many another, and so on: what a rank needs grows with its queue pairs, and a
//! rank with many of them polls few completion queues.

use std::sync::OnceLock;

use ibverbs_sim::{CompletionChannel, CompletionQueue, Context, Result, WorkCompletion};

use super::doubling;

/// Queue pairs of the first completion queue, as a power of two.
const FIRST_SHIFT: u32 = 2;
/// Number of completion queues: enough for 16 times as many queue pairs as a run has ranks at most.
const QUEUES: usize = 14;

/// The completion queues of the sends of a rank, each created with the first queue pair that needs
/// it.
pub(crate) struct SendCompletions {
    queues: [OnceLock<CompletionQueue>; QUEUES],
    context: Context,
    channel: CompletionChannel,
    /// Largest number of queue pairs.
    most: u32,
    /// Capacity of each send queue.
    sends: u32,
}

impl SendCompletions {
    pub(super) fn new(
        context: &Context,
        channel: &CompletionChannel,
        most: u32,
        sends: u32,
    ) -> Self {
        let (context, channel) = (context.clone(), channel.clone());
        SendCompletions {
            queues: [const { OnceLock::new() }; QUEUES],
            context,
            channel,
            most,
            sends,
        }
    }

    /// Returns the completion queue of the `nth` queue pair. One thread at a time calls this.
    ///
    /// **Errors**: a limit of the device is exceeded.
    pub(super) fn of(&self, nth: u32) -> Result<&CompletionQueue> {
        let (number, first, count) = place(nth);
        let queue = &self.queues[number];
        if let Some(queue) = queue.get() {
            return Ok(queue);
        }
        let entries = count.min(self.most.saturating_sub(first).max(1)) * self.sends;
        let created = self.context.create_completion_queue(entries, Some(&self.channel))?;
        // The polling task may have armed the others and sleep already.
        created.request_notify(false)?;
        Ok(queue.get_or_init(|| created))
    }

    fn queues(&self) -> impl Iterator<Item = &CompletionQueue> {
        self.queues.iter().map_while(OnceLock::get)
    }

    /// Returns `true` if there is no completion at the moment.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queues().all(CompletionQueue::is_empty)
    }

    /// Takes completions, those of one queue pair in order. Returns their number.
    #[inline]
    pub(crate) fn poll(&self, completions: &mut [WorkCompletion]) -> usize {
        let mut taken = 0;
        for queue in self.queues() {
            taken += queue.poll(&mut completions[taken..]);
            if taken == completions.len() {
                break;
            }
        }
        taken
    }

    /// Arms the channel for the next completion, also of queues that do not exist yet.
    pub(crate) fn request_notify(&self) -> Result<()> {
        self.queues().try_for_each(|queue| queue.request_notify(false))
    }
}

/// Returns the number of queue pairs that the completion queues of `queue_pairs` have room for.
pub(super) fn room_for(queue_pairs: u32) -> u32 {
    let (_, first, count) = place(queue_pairs.saturating_sub(1));
    first + count
}

/// Returns the number of the completion queue of the `nth` queue pair, the first queue pair that it
/// serves, and their number.
fn place(nth: u32) -> (usize, u32, u32) {
    let (number, offset) = doubling::place(nth, FIRST_SHIFT);
    (number, nth - offset, 1 << (FIRST_SHIFT + number as u32))
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use ibverbs_sim::{Device, DeviceConfig};

    use super::*;

    #[test]
    fn each_completion_queue_serves_twice_as_many_queue_pairs_as_the_one_before() {
        let places = [0, 3, 4, 11, 12, 27, 28].map(place);
        assert_eq!(places[..2], [(0, 0, 4); 2]);
        assert_eq!(places[2..4], [(1, 4, 8); 2]);
        assert_eq!(places[4..6], [(2, 12, 16); 2]);
        assert_eq!(places[6], (3, 28, 32));
        assert!(place(1 << 15).0 < QUEUES);
        assert_eq!([0, 1, 4, 5, 16].map(room_for), [4, 4, 4, 12, 28]);
    }

    #[test]
    fn completion_queues_come_one_by_one_and_none_is_larger_than_needed() {
        let context = Device::new(DeviceConfig::default()).unwrap().open();
        let completions = SendCompletions::new(&context, &CompletionChannel::new(), 6, 64);
        assert!(completions.is_empty() && completions.queues().next().is_none());
        for nth in 0..6 {
            completions.of(nth).unwrap();
        }
        let capacities: Vec<_> = completions.queues().map(CompletionQueue::capacity).collect();
        assert_eq!(capacities, [4 * 64, 2 * 64]);
    }
}
