#![allow(unsafe_code, reason = "pieces of memory may go to other threads")]
//! Pieces of what peers have announced: those that wait, and those that the provider has.

use std::{collections::VecDeque, ffi::c_void, mem, ptr::NonNull};

use super::{memory::Contexts, reader::Exposed};

/// Most fetches that the provider has.
pub(super) const MOST_UNDER_WAY: usize = 64;
/// Most of them from one process, which may not get on.
const MOST_EACH: usize = 8;
/// Pieces that are to be read.
pub(super) struct Pieces {
    contexts: Contexts,
    /// Pieces that the provider has, by their contexts.
    under_way: [Option<Fetch>; MOST_UNDER_WAY],
    /// Pieces that were not begun, by process, the oldest first.
    waiting: Box<[VecDeque<Fetch>]>,
    /// Process of which pieces are begun first.
    first: usize,
}

/// A piece of what a peer has announced.
#[derive(Clone, Copy)]
pub(super) struct Fetch {
    pub(super) from: u32,
    /// Number of the announcement.
    pub(super) number: u32,
    pub(super) source: Exposed,
    pub(super) local: NonNull<[u8]>,
    /// Descriptor of the registration of the memory, for local operations.
    pub(super) descriptor: *mut c_void,
}

// SAFETY: memory and descriptor belong to a registration, or to a read, which is not closed before the fetch has
// ended; any thread may use both.
unsafe impl Send for Fetch {}

impl Pieces {
    pub(super) fn new(processes: usize) -> Self {
        Self {
            contexts: Contexts::new(MOST_UNDER_WAY),
            under_way: [None; MOST_UNDER_WAY],
            waiting: (0..processes).map(|_| VecDeque::new()).collect(),
            first: 0,
        }
    }

    pub(super) fn add(&mut self, fetch: Fetch) {
        self.waiting[fetch.from as usize].push_back(fetch);
    }

    /// Returns `true` if a piece was not begun.
    pub(super) fn are_waiting(&self) -> bool {
        self.waiting.iter().any(|waiting| !waiting.is_empty())
    }

    /// Returns `true` if there is a piece.
    pub(super) fn are_there(&self) -> bool {
        self.are_waiting() || self.under_way.iter().any(Option::is_some)
    }

    /// Returns all processes, another one first each time.
    pub(super) fn processes(&mut self) -> impl Iterator<Item = usize> + use<> {
        let all = self.waiting.len();
        self.first = (self.first + 1) % all;
        (self.first..all).chain(0..self.first)
    }

    /// Returns the piece of a process that is to be begun next, and a context that is free.
    pub(super) fn next(&self, process: usize) -> Option<(Fetch, usize)> {
        let fetch = *self.waiting[process].front()?;
        let context = self.under_way.iter().position(Option::is_none)?;
        let of_it = self.under_way.iter().flatten().filter(|other| other.from == fetch.from);
        (of_it.count() < MOST_EACH).then_some((fetch, context))
    }

    /// Notes that the provider has the piece of a process that was to be begun next.
    pub(super) fn begun(&mut self, process: usize, context: usize) {
        self.under_way[context] = self.waiting[process].pop_front();
    }

    /// Returns a context for the provider.
    pub(super) fn context(&self, number: usize) -> *mut c_void {
        self.contexts.pointer(number)
    }

    /// Takes a piece that has ended from the provider.
    pub(super) fn end(&mut self, context: *const c_void) -> Option<Fetch> {
        self.under_way[self.contexts.number(context)?].take()
    }

    /// Forgets the pieces that are not kept. Returns `true` if the provider has one of them.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&Fetch) -> bool) -> bool {
        self.waiting.iter_mut().for_each(|waiting| waiting.retain(&is_kept));
        let mut has_one = false;
        for place in &mut self.under_way {
            has_one |= place.take_if(|fetch| !is_kept(fetch)).is_some();
        }
        has_one
    }

    /// Lets the pieces that the provider had begin again.
    pub(super) fn restart(&mut self) {
        for fetch in mem::replace(&mut self.under_way, [None; MOST_UNDER_WAY]).into_iter().flatten()
        {
            self.waiting[fetch.from as usize].push_front(fetch);
        }
    }
}
