//! The notifications of one rank, as sources and waits find them, under one lock.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crossbeam_utils::CachePadded;
use talpf_primitives::Mutex;

use super::claim::NotifiedClaim;
use super::follows::{Admitted, Completion};
use super::id::{Admission, Untaken, Waiter, WaiterNumber, Waiting};
use super::ids::FIRST_PRIVATE;
use super::state::{State, parked_of, take_any};
use super::under_way::Coming;
use super::wait_count::WaitCount;
use super::{Follows, Notification};
use crate::error::Error;
use crate::numbers::{ArrivalNumber, Rank};
use crate::window::{Area, HasLanded, Landing, Outcome, Post};

/// Default number of ids of a rank.
const IDS: u32 = 1 << 16;

/// The notifications of one rank.
pub(crate) struct NotificationTable {
    pub(super) rank: Rank,
    /// Largest number of parked operations of a source, beside the first of each id.
    credits: usize,
    /// Sources that the table limits to their credit.
    limited: Range<u32>,
    /// Number of ids.
    ids: AtomicU32,
    hints: CachePadded<Hints>,
    pub(super) state: Mutex<State>,
}

/// Hints for threads that read them repeatedly. Changed under the lock.
#[derive(Default)]
struct Hints {
    /// Number of waits that have not ended.
    waiting: WaitCount,
    /// Set while an operation that may land waits for room to be posted, or, after a failure, while
    /// any is under way.
    delayed: AtomicBool,
}

impl NotificationTable {
    /// Makes a table of `rank` with `credits` parked operations a source.
    pub(crate) fn new(rank: Rank, credits: usize) -> Self {
        let (ids, hints) = (AtomicU32::new(IDS), CachePadded::default());
        NotificationTable {
            rank,
            credits,
            limited: 0..u32::MAX,
            ids,
            hints,
            state: Mutex::default(),
        }
    }

    /// Sets the sources whose credit is limited here; others have all that they ask for.
    pub(crate) fn limiting(self, limited: Range<u32>) -> Self {
        NotificationTable { limited, ..self }
    }

    /// Returns the number of ids.
    pub(crate) fn ids(&self) -> u32 {
        self.ids.load(Ordering::Relaxed)
    }

    /// Sets the number of ids.
    ///
    /// **Errors**: fewer than have been used; more than 2^31.
    pub(crate) fn set_ids(&self, ids: u32) -> Result<(), Error> {
        if ids > FIRST_PRIVATE {
            let (value, limit) = (u64::from(ids), u64::from(FIRST_PRIVATE));
            return Err(Error::Limit { what: "number of notification ids", value, limit });
        }
        let used = self.state.lock().ids.used();
        if ids < used {
            let (value, limit) = (u64::from(ids), u64::from(used));
            return Err(Error::Limit { what: "number of ids below those in use", value, limit });
        }
        self.ids.store(ids, Ordering::Relaxed);
        Ok(())
    }

    /// Checks that an id exists.
    ///
    /// **Errors**: it does not.
    pub(crate) fn check_id(&self, id: u32) -> Result<(), Error> {
        let (rank, ids) = (self.rank, self.ids());
        if id < ids { Ok(()) } else { Err(Error::NoSuchNotification { rank, id, ids }) }
    }

    /// Returns `true` if a wait has not ended. A hint.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.hints.waiting.is_any()
    }

    /// Returns `true` if there is something to settle. A hint.
    #[inline]
    pub(crate) fn has_delayed(&self) -> bool {
        self.hints.delayed.load(Ordering::Relaxed)
    }

    /// Posts or parks an operation whose bytes `writer` writes, or returns it. A `quick` operation
    /// is carried out or posted under the lock.
    #[inline]
    pub(crate) fn land<L: Landing>(
        &self,
        notified: NotifiedClaim,
        writer: Rank,
        quick: bool,
        mut operation: L,
        follows: &mut Follows,
    ) -> Outcome<L> {
        let notification @ Notification { source, id, .. } = notified.notification;
        let mut state = self.state.lock();
        if state.failed.is_some() || id >= self.ids() && !state.ids.has_private(id) {
            return Outcome::Refused(operation);
        }
        let State { ids, any, under_way, parked, .. } = &mut *state;
        if under_way.is_full() {
            return Outcome::Retry(operation);
        }
        let of_id = ids.of(id);
        let admission = match of_id.parked.is_empty() {
            true => of_id.admit(&notified, || take_any(any, id)),
            false => Admission::Waits,
        };
        let waiter = match admission {
            Admission::Lands(waiter) => waiter,
            Admission::Waits => {
                let count = parked_of(parked, source);
                if *count >= self.credits
                    && self.limited.contains(&source.0)
                    && of_id.has_parked_of(source)
                {
                    return Outcome::Retry(operation);
                }
                *count += 1;
                let operation = operation.park();
                of_id.parked.push_back(Waiting { notified, writer, operation });
                return Outcome::Parked;
            }
            Admission::Refused => return Outcome::Refused(operation),
        };
        if quick && operation.carry_out() {
            if waiter.is_none() {
                of_id.keep(Untaken::Arrived(notification));
            }
            self.deliver(&mut state, waiter, notification, follows);
            return Outcome::Posted(operation);
        }
        let is_awaited = waiter.is_some();
        let number = under_way.add(Coming::new(notification, writer, waiter, !quick));
        if !is_awaited {
            under_way.set_position(number, of_id.keep(Untaken::Coming(number)));
        }
        operation.admit(number);
        let post = if quick {
            operation.post()
        } else {
            drop(state);
            let post = operation.post();
            state = self.state.lock();
            state.end_to_post(number);
            post
        };
        if post == Post::All {
            return Outcome::Posted(operation);
        }
        if state.failed.is_some() {
            return Outcome::Refused(operation);
        }
        *parked_of(&mut state.parked, source) += 1;
        state.unposted.push(Admitted { number, source, operation: operation.park() });
        self.hints.delayed.store(true, Ordering::Relaxed);
        Outcome::Parked
    }

    /// Takes in the arrival of an operation that `writer` has written. Returns its notification, or
    /// `None` if none with this number is under way.
    pub(crate) fn arrive(
        &self,
        number: ArrivalNumber,
        writer: Rank,
        follows: &mut Follows,
    ) -> Option<Notification> {
        let mut state = self.state.lock();
        let coming = state.under_way.at(number)?;
        if coming.writer != writer || coming.arrived {
            return None;
        }
        let (notification, position) = (coming.notification, coming.position);
        let waiter = coming.waiter.take();
        coming.arrived = true;
        if !coming.posting {
            state.under_way.remove(number);
        }
        if waiter.is_none() {
            state.ids.of(notification.id).arrive(position, notification);
        }
        self.deliver(&mut state, waiter, notification, follows);
        Some(notification)
    }

    /// Ends the wait that a notification which has arrived is for, or passes it to the listener of its
    /// id.
    #[inline]
    fn deliver(
        &self,
        state: &mut State,
        waiter: Option<Waiter>,
        notification: Notification,
        follows: &mut Follows,
    ) {
        if let Some(waiter) = waiter {
            self.count_waits(-1);
            follows.end(waiter.completion, Ok(notification));
        } else if state.ids.has_private(notification.id) {
            state.pass_to_listener(notification.id, follows);
        }
    }

    /// Begins a wait for an id, with the inbox in which a put may land. Returns its number, unless it
    /// has ended.
    pub(crate) fn wait(
        &self,
        id: u32,
        inbox: Option<Area>,
        completion: Completion,
        follows: &mut Follows,
    ) -> Option<WaiterNumber> {
        let mut state = self.state.lock();
        if let Err(error) = self.check_wait(&state, id) {
            follows.end(completion, Err(error));
            return None;
        }
        let number = state.next_waiter();
        let State { ids, under_way, .. } = &mut *state;
        let of_id = ids.of(id);
        let untaken = of_id.take();
        if let Some(Untaken::Arrived(notification)) = untaken {
            follows.end(completion, Ok(notification));
            state.admit_parked(id, follows);
            return None;
        }
        self.count_waits(1);
        let waiter = Waiter { number, inbox, completion };
        match untaken {
            Some(Untaken::Coming(coming)) => under_way.attach(coming, waiter),
            _ => of_id.waiters.push_back(waiter),
        }
        state.admit_parked(id, follows);
        Some(number)
    }

    /// Begins a wait for any of several ids, without an inbox. Returns its number, unless it has
    /// ended.
    pub(crate) fn wait_any(
        &self,
        ids: Range<u32>,
        completion: Completion,
        follows: &mut Follows,
    ) -> Option<WaiterNumber> {
        let mut state = self.state.lock();
        let checked = match ids.end.checked_sub(1).filter(|_| !ids.is_empty()) {
            Some(last) => self.check_wait(&state, ids.start).and_then(|()| self.check_id(last)),
            None => Err(Error::Limit { what: "number of ids to wait for", value: 0, limit: 1 }),
        };
        if let Err(error) = checked {
            follows.end(completion, Err(error));
            return None;
        }
        let number = state.next_waiter();
        let used = state.ids.used().min(ids.end);
        let waiter = Waiter { number, inbox: None, completion };
        for id in ids.start.min(used)..used {
            match state.ids.of(id).take() {
                None => {}
                Some(Untaken::Arrived(notification)) => {
                    follows.end(waiter.completion, Ok(notification));
                    state.admit_parked(id, follows);
                    return None;
                }
                Some(Untaken::Coming(coming)) => {
                    self.count_waits(1);
                    state.under_way.attach(coming, waiter);
                    state.admit_parked(id, follows);
                    return Some(number);
                }
            }
        }
        self.count_waits(1);
        state.any.push((ids, waiter));
        Some(number)
    }

    /// Gives up a wait for `awaited` ids, unless it has ended or a put is landing in its inbox. Its completion is to be
    /// dropped under no lock.
    pub(crate) fn give_up(&self, number: WaiterNumber, awaited: Range<u32>) -> Option<Completion> {
        let mut state = self.state.lock();
        let is_it = |waiter: &Waiter| waiter.number == number;
        let State { ids, any, under_way, .. } = &mut *state;
        let queued = ids.among(awaited).find_map(|of_id| {
            let at = of_id.waiters.iter().position(is_it)?;
            of_id.waiters.remove(at)
        });
        let waiter = queued.or_else(|| {
            let at = any.iter().position(|(_, waiter)| is_it(waiter))?;
            Some(any.remove(at).1)
        });
        let waiter = waiter.or_else(|| {
            let is_free = |waiter: &Waiter| is_it(waiter) && waiter.inbox.is_none();
            let mut each = under_way.each();
            let (number, coming) =
                each.find(|(_, coming)| coming.waiter.as_ref().is_some_and(is_free))?;
            let given_up = coming.waiter.take();
            let of_id = ids.of(coming.notification.id);
            coming.waiter =
                of_id.waiters.pop_front().or_else(|| take_any(any, coming.notification.id));
            if coming.waiter.is_none() {
                coming.position = of_id.give_back(Untaken::Coming(number));
            }
            given_up
        })?;
        self.count_waits(-1);
        Some(waiter.completion)
    }

    /// Gives back a notification that has ended a wait which is given up: it ends another one.
    pub(crate) fn give_back(&self, notification: Notification, follows: &mut Follows) {
        let mut state = self.state.lock();
        let State { ids, any, .. } = &mut *state;
        let of_id = ids.of(notification.id);
        match of_id.waiters.pop_front().or_else(|| take_any(any, notification.id)) {
            Some(waiter) => {
                self.count_waits(-1);
                follows.end(waiter.completion, Ok(notification));
            }
            None => drop(of_id.give_back(Untaken::Arrived(notification))),
        }
    }

    /// Takes in the outcome of an operation that was posted after it had left the table.
    pub(crate) fn end_to_post(&self, admitted: Admitted, post: Post, follows: &mut Follows) {
        let mut state = self.state.lock();
        let Admitted { number, source, operation } = admitted;
        state.end_to_post(number);
        if post == Post::All {
            state.unpark(source, follows);
            drop(state);
            drop(operation);
        } else if state.failed.is_some() {
            follows.lists().refused.push(operation);
        } else {
            state.unposted.push(Admitted { number, source, operation });
            self.hints.delayed.store(true, Ordering::Relaxed);
        }
    }

    /// Posts operations again that found no room. After a failure, ends the waits whose puts have
    /// landed.
    pub(crate) fn settle(&self, has_landed: HasLanded<'_>, follows: &mut Follows) {
        let mut state = self.state.lock();
        let unposted = std::mem::take(&mut state.unposted);
        let State { under_way, failed, .. } = &mut *state;
        let Some(reason) = failed.clone() else {
            for admitted in unposted {
                under_way.at(admitted.number).into_iter().for_each(|coming| coming.posting = true);
                follows.lists().admitted.push(admitted);
            }
            return self.hints.delayed.store(false, Ordering::Relaxed);
        };
        follows.lists().refused.extend(unposted.into_iter().map(|admitted| admitted.operation));
        let (mut landed, mut delayed) = (Vec::new(), false);
        for (number, coming) in under_way.each() {
            match !coming.posting && has_landed(coming.writer) {
                true => landed.push(number),
                false => delayed = true,
            }
        }
        for coming in landed.into_iter().filter_map(|number| under_way.remove(number)) {
            if let Some(waiter) = coming.waiter {
                self.count_waits(-1);
                let error = self.not_notified(coming.notification.id, &reason);
                follows.end(waiter.completion, Err(error));
            }
        }
        self.hints.delayed.store(delayed, Ordering::Relaxed);
    }

    /// Refuses all parked and later operations, and ends the waits for them, after a failure of the
    /// run. `settle` ends the others once their puts have landed.
    pub(crate) fn fail(&self, reason: &Arc<str>, follows: &mut Follows) {
        let mut state = self.state.lock();
        state.failed.get_or_insert_with(|| Arc::clone(reason));
        let mut ended = 0;
        let mut end = |id: u32, waiter: Waiter| {
            ended += 1;
            follows.end(waiter.completion, Err(self.not_notified(id, reason)));
        };
        for (id, of_id) in state.ids.each_mut() {
            of_id.waiters.drain(..).for_each(|waiter| end(id, waiter));
        }
        state.any.drain(..).for_each(|(ids, waiter)| end(ids.start, waiter));
        let parked = state.ids.each_mut().flat_map(|(_, of_id)| of_id.parked.drain(..));
        follows.lists().refused.extend(parked.map(|waiting| waiting.operation));
        state.parked.fill(0);
        follows.listeners.extend(state.ids.listeners().cloned());
        self.count_waits(-ended);
        self.hints.delayed.store(true, Ordering::Relaxed);
    }

    /// Drops everything, at the end of the run.
    pub(crate) fn clear(&self) {
        let mut state = self.state.lock();
        let (ids, any) = (std::mem::take(&mut state.ids), std::mem::take(&mut state.any));
        let dropped = (ids, any, state.under_way.clear(), std::mem::take(&mut state.unposted));
        drop(state);
        drop(dropped);
    }

    /// Checks that a wait may begin.
    fn check_wait(&self, state: &State, id: u32) -> Result<(), Error> {
        match &state.failed {
            Some(reason) => Err(self.not_notified(id, reason)),
            None => self.check_id(id),
        }
    }

    fn not_notified(&self, id: u32, reason: &Arc<str>) -> Error {
        Error::NotNotified { rank: self.rank, id, reason: reason.to_string() }
    }

    /// Changes the number of waits, under the lock.
    #[inline]
    fn count_waits(&self, change: isize) {
        self.hints.waiting.change(change);
    }
}
