//! All-gather, the collective call in which every rank gives some bytes, or its error, and gets
//! those of all.
//!
//! For start and registration, never for supersteps. Each rank calls in the same order: the n-th
//! call of one rank belongs to the n-th call of every other. The number of a call is drawn under
//! the lock under which its part is given, so a slot named after the call has one number
//! everywhere, whichever ranks fail and however many tasks of a rank call at once. Ranks that make
//! different calls, or of which one fails, all get an error, and may continue with the next call.

use std::collections::HashMap;
use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use talpf_primitives::Mutex;

use crate::error::Error;
use crate::numbers::Rank;

/// The kinds of collective calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Start,
    RegisterGlobal,
    RegisterRaw,
    DoubleBufferedChannel,
    Probe,
    Broadcast,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    Allreduce,
    Scan,
    Rehook,
    LeaveLibrary,
    RemoteQueue,
    SampledValue,
    Phaser,
}

/// The collective calls, by their numbers in messages.
const CALLS: [Call; 17] = [
    Call::Start,
    Call::RegisterGlobal,
    Call::RegisterRaw,
    Call::DoubleBufferedChannel,
    Call::Probe,
    Call::Broadcast,
    Call::Gather,
    Call::Scatter,
    Call::Allgather,
    Call::Alltoall,
    Call::Allreduce,
    Call::Scan,
    Call::Rehook,
    Call::LeaveLibrary,
    Call::RemoteQueue,
    Call::SampledValue,
    Call::Phaser,
];

impl Call {
    /// Returns the name of the call in error messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Call::Start => "the handshake of the run",
            Call::RegisterGlobal => "register_global",
            Call::RegisterRaw => "register_raw",
            Call::DoubleBufferedChannel => "double_buffered_channel",
            Call::Probe => "probe",
            Call::Broadcast => "broadcast",
            Call::Gather => "gather",
            Call::Scatter => "scatter",
            Call::Allgather => "allgather",
            Call::Alltoall => "alltoall",
            Call::Allreduce => "allreduce",
            Call::Scan => "scan",
            Call::Rehook => "rehook",
            Call::LeaveLibrary => "the end of a library",
            Call::RemoteQueue => "remote_queue",
            Call::SampledValue => "sampled_value",
            Call::Phaser => "phaser",
        }
    }
}

/// The part of a rank in a call: its bytes, or the text of its error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    call: Call,
    given: Result<Vec<u8>, String>,
}

impl Part {
    pub(crate) fn new(call: Call, given: Result<Vec<u8>, String>) -> Self {
        Part { call, given }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let (failed, rest) = match &self.given {
            Ok(bytes) => (0, bytes.as_slice()),
            Err(reason) => (1, reason.as_bytes()),
        };
        [&[self.call as u8, failed][..], rest].concat()
    }

    /// Decodes a part. `None` if the bytes are not one.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&[call, failed], rest) = bytes.split_first_chunk()?;
        let given = match failed {
            0 => Ok(rest.to_vec()),
            1 => Err(str::from_utf8(rest).ok()?.to_owned()),
            _ => return None,
        };
        Some(Part { call: *CALLS.get(usize::from(call))?, given })
    }

    fn len(&self) -> usize {
        self.given.as_ref().map_or_else(String::len, Vec::len)
    }
}

/// The parts that all ranks gave in a call.
pub(crate) struct Gathered {
    /// The number of the call, the same at every rank.
    pub(crate) number: u64,
    parts: Arc<[Part]>,
}

impl Gathered {
    /// Returns the part that each rank gave, by rank.
    pub(crate) fn each(&self) -> impl Iterator<Item = (Rank, &[u8])> {
        let parts = self.parts.iter().zip((0..).map(Rank));
        parts.map(|(part, rank)| (rank, part.given.as_deref().unwrap_or_default()))
    }

    /// Checks that all ranks made the same call.
    ///
    /// **Errors**: a rank made another call, or failed.
    fn check(self, call: Call) -> Result<Self, Error> {
        let ranks = || self.parts.iter().zip((0..).map(Rank));
        if let Some((other, rank)) = ranks().find(|(part, _)| part.call != call) {
            let (here, there) = (call.name(), other.call.name());
            return Err(Error::CallsDiffer { here, rank, there });
        }
        for (part, rank) in ranks() {
            if let Err(reason) = &part.given {
                let (call, reason) = (call.name(), reason.clone());
                return Err(Error::CallFailed { call, rank, reason });
            }
        }
        Ok(self)
    }
}

/// Largest number of calls that a remote rank may be ahead of this one.
const CALLS_AHEAD: u64 = 1024;
/// Largest number of bytes that a remote rank may have given in calls that have not ended.
const BYTES_AHEAD: usize = 1 << 26;

/// The collective calls of a run, in one process.
pub(crate) struct AllGather {
    ranks: usize,
    /// Ranks of this process, each of which takes the result.
    here: Range<u32>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    calls: HashMap<u64, OpenCall>,
    /// Number of the next call of each rank of this process.
    next: Box<[u64]>,
    failed: Option<Error>,
}

/// A call that not all ranks have made, or not all of this process have returned from.
#[derive(Default)]
struct OpenCall {
    /// Parts by rank; empty once all have given theirs.
    given: Vec<Option<Part>>,
    all: Option<Arc<[Part]>>,
    /// Number of ranks of this process that have the result, or do not wait for it.
    returned: usize,
    waiting: Vec<Waker>,
}

impl AllGather {
    pub(crate) fn new(ranks: u32, here: Range<u32>) -> Self {
        let next = here.clone().map(|_| 0).collect();
        let state = Mutex::new(State { next, ..State::default() });
        AllGather { ranks: ranks as usize, here, state }
    }

    /// Gives the part of a rank of this process in its next call, and draws the number of the call.
    pub(crate) fn give(&self, rank: Rank, part: Part) -> PendingGather<'_> {
        let mut state = self.state.lock();
        let next = &mut state.next[(rank.0 - self.here.start) as usize];
        let number = *next;
        *next += 1;
        let call = part.call;
        let woken = state.add(number, rank, part, (self.ranks, self.here.len()));
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        PendingGather { all_gather: self, call, number }
    }

    /// Adds the part that a remote rank has sent.
    ///
    /// **Errors**: it has given that part before, or is too far ahead. Nothing is kept then.
    pub(crate) fn give_remote(&self, rank: Rank, number: u64, part: Part) -> Result<(), String> {
        let mut state = self.state.lock();
        // A call that a rank of this process has not made is not over.
        let next = state.next.iter().copied().min().unwrap_or(0);
        let of_rank = |call: &OpenCall| call.given.get(rank.index()).map(Option::is_some);
        let again = match state.calls.get(&number) {
            Some(call) => of_rank(call).unwrap_or(true),
            None => number < next,
        };
        if again {
            return Err(format!("its part in collective call {number} a second time"));
        }
        if number >= next.saturating_add(CALLS_AHEAD) {
            return Err(format!(
                "its part in collective call {number}, {} ahead of this rank, the limit is \
                 {CALLS_AHEAD}",
                number - next
            ));
        }
        let given = state.calls.values().filter_map(|call| call.given.get(rank.index())?.as_ref());
        let bytes = given.map(Part::len).sum::<usize>() + part.len();
        if bytes > BYTES_AHEAD {
            return Err(format!(
                "{bytes} bytes in collective calls ahead of this rank, the limit is {BYTES_AHEAD}"
            ));
        }
        let woken = state.add(number, rank, part, (self.ranks, self.here.len()));
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Ends all waits with `error`, as a rank will make no more calls.
    pub(crate) fn fail(&self, error: Error) {
        let mut state = self.state.lock();
        state.failed.get_or_insert(error);
        let waiting = state.calls.values_mut().flat_map(|call| call.waiting.drain(..));
        let woken: Vec<Waker> = waiting.collect();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}

impl State {
    /// Adds a part. Returns the wakers of the call if it is complete, to be called under no lock.
    #[must_use]
    fn add(
        &mut self,
        number: u64,
        rank: Rank,
        part: Part,
        (ranks, takers): (usize, usize),
    ) -> Vec<Waker> {
        let call = self.calls.entry(number).or_default();
        call.given.resize(ranks, None);
        call.given[rank.index()] = Some(part);
        if !call.given.iter().all(Option::is_some) {
            return Vec::new();
        }
        call.all = Some(call.given.drain(..).flatten().collect());
        let waiting = std::mem::take(&mut call.waiting);
        self.remove_if_over(number, takers);
        waiting
    }

    /// Removes a call that all ranks have made and all of this process have returned from.
    fn remove_if_over(&mut self, number: u64, takers: usize) {
        let over = |call: &OpenCall| call.all.is_some() && call.returned == takers;
        if self.calls.get(&number).is_some_and(over) {
            self.calls.remove(&number);
        }
    }
}

/// A handle of the call of a rank of this process, whose drop ends its wait for the result.
#[must_use]
pub(crate) struct PendingGather<'a> {
    all_gather: &'a AllGather,
    call: Call,
    pub(crate) number: u64,
}

impl PendingGather<'_> {
    /// Waits for the parts of all ranks.
    ///
    /// **Errors**: a rank made another call; a rank failed in it; the run has failed.
    pub(crate) async fn gather(self) -> Result<Gathered, Error> {
        let parts = poll_fn(|cx| self.poll(cx)).await?;
        Gathered { number: self.number, parts }.check(self.call)
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<Arc<[Part]>, Error>> {
        let mut state = self.all_gather.state.lock();
        let State { calls, failed, .. } = &mut *state;
        // The call is not removed before this handle is dropped.
        let call = calls.entry(self.number).or_default();
        if let Some(all) = &call.all {
            return Poll::Ready(Ok(Arc::clone(all)));
        }
        if let Some(error) = failed {
            return Poll::Ready(Err(error.clone()));
        }
        if !call.waiting.iter().any(|known| known.will_wake(cx.waker())) {
            call.waiting.push(cx.waker().clone());
        }
        talpf_runtime::note_wait("a collective call of all ranks");
        Poll::Pending
    }
}

impl Drop for PendingGather<'_> {
    fn drop(&mut self) {
        let mut state = self.all_gather.state.lock();
        if let Some(call) = state.calls.get_mut(&self.number) {
            call.returned += 1;
        }
        state.remove_if_over(self.number, self.all_gather.here.len());
    }
}
