//! Tasks that wait for a message to probe.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use talpf_primitives::Mutex;

use super::transport::MpiTransport;
use super::{RawCommunicator, Refused};
use crate::foreign::call;
use crate::select::Select;
use crate::transport::{MessageId, Probed, Wanted};

/// Wakers of tasks that wait for a message to probe.
#[derive(Default)]
pub(super) struct Probers {
    waiting: Mutex<Vec<(Wanted, Waker)>>,
    count: AtomicUsize,
}

impl Probers {
    pub(super) fn add(&self, wanted: Wanted, waker: &Waker) {
        // Cloned and dropped under no lock: it is foreign code.
        let mut added = Some((wanted, waker.clone()));
        let mut waiting = self.waiting.lock();
        let same = |(other, known): &(Wanted, Waker)| *other == wanted && known.will_wake(waker);
        if !waiting.iter().any(same) {
            waiting.extend(added.take());
        }
        self.count.store(waiting.len(), Ordering::SeqCst);
        drop(waiting);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Wakes and removes the tasks for whose message `is_there` returns `true`.
    pub(super) fn wake(&self, is_there: impl Fn(&Wanted) -> bool) {
        if self.is_empty() {
            return;
        }
        let mut waiting = self.waiting.lock();
        let woken: Vec<_> = waiting.extract_if(.., |(wanted, _)| is_there(wanted)).collect();
        self.count.store(waiting.len(), Ordering::SeqCst);
        drop(waiting);
        for (_, waker) in woken {
            call("a waker", || waker.wake());
        }
    }
}

impl MpiTransport {
    /// Probes for a message, and with `take` takes it.
    pub(super) fn try_probe(
        &self,
        communicator: RawCommunicator,
        wanted: &Wanted,
        take: bool,
    ) -> Result<Option<Probed>, Refused> {
        let (source, tag) = selected(wanted);
        if !take {
            let found = communicator.probe(source, tag)?;
            return Ok(found.map(|raw| Probed { status: raw.known(), message: None }));
        }
        let Some((message, raw)) = communicator.probe_matched(source, tag)? else {
            return Ok(None);
        };
        let (id, status) = (MessageId(self.number()), raw.known());
        self.matched.lock().insert(id, (message, status));
        Ok(Some(Probed { status, message: Some(id) }))
    }

    /// Wakes the tasks whose message has arrived.
    pub(super) fn serve_probers(&self) {
        self.probers.wake(|wanted| {
            let slot = self.contexts.find(wanted.context).ok();
            match slot.as_ref().and_then(|slot| slot.get()) {
                // The task will see the error.
                Some(Ok(communicator)) => {
                    let (source, tag) = selected(wanted);
                    communicator.probe(source, tag).map_or(true, |found| found.is_some())
                }
                Some(Err(_)) => true,
                None => slot.is_none(),
            }
        });
    }
}

/// Returns the wanted source and tag; `None` for any.
pub(super) fn selected(wanted: &Wanted) -> (Option<u32>, Option<u32>) {
    let source = match wanted.source {
        Select::Any => None,
        Select::Only(peer) => Some(peer.rank.0),
    };
    let tag = match wanted.tag {
        Select::Any => None,
        Select::Only(tag) => Some(tag.0),
    };
    (source, tag)
}
