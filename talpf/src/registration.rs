//! The registration of memory that belongs to the ends of a queue, or to others like them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sender::Sender;
use crate::slot::Slot;

/// The registration of the memory of ends at one rank, which goes with the last of them.
pub(crate) struct Registration {
    sender: Arc<Sender>,
    slot: Arc<Slot>,
    /// Set if peers may still write, so that the memory is kept until the run ends.
    is_kept: AtomicBool,
}

impl Registration {
    pub(crate) fn new(sender: &Arc<Sender>, slot: &Arc<Slot>) -> Arc<Self> {
        let (sender, slot) = (Arc::clone(sender), Arc::clone(slot));
        Arc::new(Registration { sender, slot, is_kept: AtomicBool::new(false) })
    }

    /// Keeps the memory until the run ends.
    pub(crate) fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if !*self.is_kept.get_mut() {
            // After the end of the run it is not there any more.
            let _ = self.sender.slots.remove(&self.slot);
        }
    }
}
