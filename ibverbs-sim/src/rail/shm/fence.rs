//! Fences that cost one side nothing.
//!
//! Two threads, each of which stores one word and then loads the word of the other, need a fence
//! between the store and the load, or both may miss each other. The fence of the one that does it
//! often can be left out if the other makes the kernel fence all processors (`membarrier`).

use talpf_primitives::{Ordering, fence};

/// Kind of the fences between the processes of a rail, the same in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AsymmetricFence {
    /// `true` if every process can be fenced by every other one.
    is_expedited: bool,
}

impl AsymmetricFence {
    pub(super) const fn new(is_expedited: bool) -> Self {
        Self { is_expedited }
    }

    /// Lets the other processes fence this one from now on. Returns `false` if this machine cannot.
    pub(super) fn allow() -> bool {
        use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};
        let possible = membarrier_query();
        possible.contains_command(MembarrierCommand::GlobalExpedited)
            && membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
    }

    /// Fence of the side that passes often.
    #[inline]
    pub(super) fn light(self) {
        if self.is_expedited {
            std::sync::atomic::compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    /// Fence of the side that passes rarely.
    #[cold]
    pub(super) fn heavy(self) {
        use rustix::thread::{MembarrierCommand, membarrier};
        fence(Ordering::SeqCst);
        if self.is_expedited {
            let fenced = membarrier(MembarrierCommand::GlobalExpedited);
            debug_assert!(fenced.is_ok(), "the processes have registered for it: {fenced:?}");
        }
    }
}
