//! Operations that are started at once, and the syncs that count them: the interface of TALPF.
//!
//! An operation is done when its call returns: the caller copies. There are no windows: a program that runs ahead
//! of its peers alternates between two buffers, or uses a sync with a barrier.
#![allow(unsafe_code, reason = "copies memory that C programs have registered")]

use crate::ends::{Far, Near};
use crate::error::Result;
use crate::memory;
use crate::misuse::{Misuse, Side};
use crate::process::Process;

/// Attributes of a sync.
pub(crate) mod attribute {
    /// The caller says how many operations arrive: the number is or-ed to it.
    pub(crate) const MSG: u32 = 0x2 << 28;
    /// As many operations arrive as in the first round.
    pub(crate) const CACHED: u32 = 0x4 << 28;
    /// All processes wait for each other.
    pub(crate) const BARRIER: u32 = 0x8 << 28;
    /// Number of operations that arrive.
    pub(crate) const COUNT: u32 = MSG - 1;
}

impl Process {
    /// Puts at once.
    pub(crate) fn put_now(
        &mut self,
        source: Near,
        destination: Far,
        size: usize,
    ) -> std::result::Result<(), Misuse> {
        let from = self.resolve(source, size, Side::Source)?;
        let to = self.resolve_far(destination, size, Side::Destination)?;
        // SAFETY: Both ends were resolved in slots of the program, which answers for who else accesses them.
        unsafe { memory::copy(from, to, size) };
        self.note_arrival(destination.pid);
        Ok(())
    }

    /// Gets at once. The source counts it.
    pub(crate) fn get_now(
        &mut self,
        source: Far,
        destination: Near,
        size: usize,
    ) -> std::result::Result<(), Misuse> {
        let to = self.resolve(destination, size, Side::Destination)?;
        let from = self.resolve_far(source, size, Side::Source)?;
        // SAFETY: As for a put.
        unsafe { memory::copy(from, to, size) };
        self.note_arrival(source.pid);
        Ok(())
    }

    /// Updates 8 bytes at the destination, and leaves what was there before in the source.
    pub(crate) fn update_now(
        &mut self,
        source: Near,
        destination: Far,
        update: impl Fn(u64) -> u64,
    ) -> std::result::Result<(), Misuse> {
        let size = size_of::<u64>();
        let from = self.resolve(source, size, Side::Source)?;
        let to = self.resolve_far(destination, size, Side::Destination)?;
        if !memory::is_aligned(to) {
            return Err(Misuse::Unaligned(destination.offset));
        }
        // SAFETY: As for a put; the address is aligned.
        let before = unsafe { memory::update(to, update) };
        // SAFETY: As for a put.
        unsafe { memory::write(&before.to_ne_bytes(), from) };
        self.note_arrival(destination.pid);
        Ok(())
    }

    fn note_arrival(&self, pid: u32) {
        self.team.members[pid as usize].arrivals.note(self.round);
    }

    /// Ends a round.
    ///
    /// # Errors
    ///
    /// [`Error::Fatal`](crate::error::Error::Fatal) if some process has left or failed, or if more operations
    /// have arrived than were expected.
    pub(crate) fn sync_round(&mut self, attribute: u32) -> Result<()> {
        let mode = attribute & !attribute::BARRIER;
        let expected = match (mode & !attribute::COUNT, self.cached_arrivals) {
            (attribute::MSG, _) => Some(u64::from(mode & attribute::COUNT)),
            (attribute::CACHED, cached) if mode == attribute::CACHED => cached,
            (0, _) if mode == 0 => None,
            _ => Err(self.misuse("talpf_sync", Misuse::SyncAttribute(attribute)))?,
        };
        // Whoever has come to the barrier has carried out its operations, so that all have arrived.
        if expected.is_none() {
            self.sync()?;
        }
        self.check_health()?;
        let team = &self.team;
        let arrived = self.member().arrivals.end_round(
            expected.unwrap_or(0),
            team.patience,
            &self.parker,
            || team.is_deserted(),
        );
        self.round += 1;
        let Some(arrived) = arrived else { return Err(self.fail()) };
        match expected {
            Some(expected) if arrived > expected => {
                let misuse = Misuse::TooManyArrivals(arrived, expected);
                Err(self.misuse("talpf_sync", misuse))
            }
            Some(_) if attribute & attribute::BARRIER != 0 => self.sync(),
            Some(_) => Ok(()),
            None => {
                self.cached_arrivals = (mode == attribute::CACHED).then_some(arrived);
                Ok(())
            }
        }
    }
}
