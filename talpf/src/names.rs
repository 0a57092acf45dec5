//! The names under which ranks have published their slots, in one process.
//!
//! A process has the names of all ranks: each name is sent to all other processes when it is published.
//! So a lookup asks nobody. It waits here until the name comes, or the end of its rank: that of the
//! program in this process, and the last message of the process of another one, which comes after
//! all its names.
//!
//! For the start of a program, never for its steps: one lock, and a search of all waits.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

use talpf_primitives::Mutex;

use crate::error::{Error, NameError};
use crate::numbers::Rank;

/// Largest number of bytes of a name.
pub(crate) const MOST_BYTES: usize = 255;
/// Largest number of names of a rank.
const MOST_NAMES: usize = 4096;

/// A slot that its rank has published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Published {
    /// Number of the slot.
    pub(crate) slot: u32,
    /// The type of its elements.
    pub(crate) element: Box<str>,
}

/// The names that ranks have published, as one process knows them.
#[derive(Default)]
pub(crate) struct Names {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By rank and name.
    published: HashMap<Rank, HashMap<Box<str>, Published>>,
    /// Ranks that publish nothing more.
    ended: HashSet<Rank>,
    waiting: Vec<Waiting>,
    /// Number of lookups that were ever begun.
    lookups: u64,
    failed: Option<Error>,
}

/// A lookup that waits.
struct Waiting {
    /// The number of the lookup.
    number: u64,
    rank: Rank,
    owner: Rank,
    name: Box<str>,
    waker: Waker,
}

impl Names {
    /// Publishes a slot of `owner`.
    ///
    /// **Errors**: a name that is too long, or that it has published; too many names; a run that has
    /// failed or ended.
    pub(crate) fn publish(
        &self,
        owner: Rank,
        name: &str,
        published: Published,
    ) -> Result<(), Error> {
        check_length(name)?;
        let mut state = self.state.lock();
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        let of_owner = state.published.entry(owner).or_default();
        if of_owner.contains_key(name) {
            let name = name.to_owned();
            return Err(NameError::PublishedTwice { rank: owner, name }.into());
        }
        let (value, limit) = (of_owner.len() as u64 + 1, MOST_NAMES as u64);
        if value > limit {
            return Err(Error::Limit { what: "number of names of a rank", value, limit });
        }
        of_owner.insert(name.into(), published);
        let woken = state.take_waiting(|waiting| waiting.owner == owner && *waiting.name == *name);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Notes that `owner` publishes nothing more.
    pub(crate) fn end(&self, owner: Rank) {
        let mut state = self.state.lock();
        state.ended.insert(owner);
        let woken = state.take_waiting(|waiting| waiting.owner == owner);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Ends all lookups with `error`.
    pub(crate) fn fail(&self, error: Error) {
        let mut state = self.state.lock();
        if state.failed.is_none() || matches!(error, Error::RunEnded) {
            state.failed = Some(error);
        }
        let woken = state.take_waiting(|_| true);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Waits for `rank` until `owner` has published a name.
    ///
    /// **Errors**: a name that is too long; the owner has ended without it; the run has failed.
    pub(crate) async fn lookup(
        &self,
        rank: Rank,
        owner: Rank,
        name: &str,
    ) -> Result<Published, Error> {
        check_length(name)?;
        let number = self.state.lock().begin_lookup();
        let lookup = Lookup { names: self, number, rank, owner, name };
        poll_fn(|cx| lookup.poll(cx)).await
    }

    /// Adds what `rank` waits for to a hang report.
    pub(crate) fn describe(&self, rank: Rank, text: &mut String) {
        for waiting in self.state.lock().waiting.iter().filter(|waiting| waiting.rank == rank) {
            let Waiting { owner, name, .. } = waiting;
            let _ = writeln!(text, "  {rank}: waits for {owner} to publish `{name}`");
        }
    }
}

impl State {
    fn begin_lookup(&mut self) -> u64 {
        self.lookups += 1;
        self.lookups
    }

    /// Takes the wakers of some lookups, to be called under no lock.
    #[must_use]
    fn take_waiting(&mut self, those: impl Fn(&Waiting) -> bool) -> Vec<Waker> {
        let (woken, waiting) = std::mem::take(&mut self.waiting).into_iter().partition(those);
        self.waiting = waiting;
        let woken: Vec<Waiting> = woken;
        woken.into_iter().map(|waiting| waiting.waker).collect()
    }
}

/// A lookup, whose drop ends its wait.
struct Lookup<'n> {
    names: &'n Names,
    number: u64,
    rank: Rank,
    owner: Rank,
    name: &'n str,
}

impl Lookup<'_> {
    fn poll(&self, cx: &Context<'_>) -> Poll<Result<Published, Error>> {
        let &Lookup { names, number, rank, owner, name } = self;
        // Wakers may be code of the program, which runs under no lock: neither clones nor drops.
        let waker = cx.waker().clone();
        let mut state = names.state.lock();
        let of_owner = state.published.get(&owner);
        let found = match (of_owner.and_then(|names| names.get(name)), &state.failed) {
            (_, Some(Error::RunEnded)) => Err(Error::RunEnded),
            (Some(published), _) => Ok(published.clone()),
            (None, Some(error)) => {
                let (name, reason) = (name.to_owned(), error.to_string());
                Err(NameError::Failed { rank, owner, name, reason }.into())
            }
            (None, None) if state.ended.contains(&owner) => {
                Err(NameError::NotPublished { rank, owner, name: name.to_owned() }.into())
            }
            (None, None) => {
                let before = state.take_waiting(|waiting| waiting.number == number);
                let name = name.into();
                state.waiting.push(Waiting { number, rank, owner, name, waker });
                drop(state);
                drop(before);
                talpf_runtime::note_wait("a name");
                return Poll::Pending;
            }
        };
        drop(state);
        Poll::Ready(found)
    }
}

impl Drop for Lookup<'_> {
    fn drop(&mut self) {
        let number = self.number;
        let left = self.names.state.lock().take_waiting(|waiting| waiting.number == number);
        drop(left);
    }
}

/// Checks the length of a name.
///
/// **Errors**: it is too long.
fn check_length(name: &str) -> Result<(), Error> {
    let (bytes, limit) = (name.len(), MOST_BYTES);
    if bytes > limit {
        return Err(NameError::TooLong { name: name.to_owned(), bytes, limit }.into());
    }
    Ok(())
}
