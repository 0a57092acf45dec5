//! The posting of parked operations that are not quick, once they are admitted.
//!
//! A window admits a parked operation under the lock, and from then on counts it as being posted:
//! the window stays open, and operations that overlap it wait. The operation is posted under no
//! lock, so its code may use the windows of any rank, this one as well. Those that leave a window
//! together are posted one after another, each once those that it overlaps have landed. One that
//! finds no room is parked again.

use smallvec::SmallVec;

use super::in_flight::InFlight;
use super::landing::{Admitted, Freed, HasLanded, Post};
use super::round::{Waiting, unpark};
use super::state::{State, round_of};
use super::table::{WindowTable, refuse};
use crate::rounds::MOST_AHEAD;

impl WindowTable {
    /// Posts the admitted operations among deferred actions, and then those that have waited for
    /// them to land. The caller holds no lock.
    #[cold]
    pub(crate) fn post_admitted(&self, mut freed: Freed, has_landed: HasLanded<'_>) -> Freed {
        loop {
            let admitted = freed.take_admitted();
            if admitted.is_empty() {
                return freed;
            }
            for admitted in admitted {
                self.post_those_of_window(admitted, has_landed, &mut freed);
            }
        }
    }

    fn post_those_of_window(
        &self,
        admitted: Admitted,
        has_landed: HasLanded<'_>,
        freed: &mut Freed,
    ) {
        let Admitted { lane, round, window: at, mut operations } = admitted;
        let mut in_flight = InFlight::default();
        let try_to_post = |Waiting { claim, operation }: &mut Waiting| {
            let admits = in_flight.admits(claim, has_landed);
            let post = if admits { operation.post() } else { Post::Nothing };
            in_flight.note_posted(claim, post, has_landed);
            post
        };
        let posts: SmallVec<[Post; 16]> = operations.iter_mut().map(try_to_post).collect();
        let (mut again, mut has_posted) = (Vec::new(), false);
        let mut state = self.state.lock();
        let State { lanes, parked, failed, .. } = &mut *state;
        let rounds = round_of(lanes, lane, round, MOST_AHEAD);
        let mut window = rounds.and_then(|windows| windows.windows().get_mut(at));
        if let Some(window) = &mut window {
            window.in_flight.end_admitted();
        }
        for (waiting, post) in operations.drain(..).zip(posts) {
            if !in_flight.is_empty()
                && let Some(window) = &mut window
            {
                window.in_flight.note_posted(&waiting.claim, post, has_landed);
            }
            if post == Post::All {
                unpark(parked, &waiting.claim, freed);
                freed.lists().posted.push(waiting.operation);
                has_posted = true;
            } else {
                again.push(waiting);
            }
        }
        let has_failed = failed.is_some();
        if let Some(window) = window.filter(|_| !has_failed) {
            window.park_again(std::mem::take(&mut again), operations);
            // Without one that was posted, those that found no room would be tried for ever.
            if has_posted {
                window.admit_parked((lane, round, at), parked, has_landed, freed);
            }
            self.note_delayed(window);
        }
        drop(state);
        if has_failed {
            refuse(again);
        }
    }
}
