//! End of a superstep.
//!
//! | what the superstep has | barriers |
//! |---|---|
//! | puts that their messages carry | all have queued |
//! | gets | all have queued; all have read |
//! | long puts | all have queued; (all have read, with gets;) all have copied |
//! | a new queue or register | as above, and: all have copied; all have replaced |
//!
//! Gets read before puts are written, as a barrier is between the two. Bytes that a message carries were read
//! before the first barrier, and its outbox stays until the process has come to the barrier of the next
//! superstep, so nobody waits for such puts to be taken.
#![allow(unsafe_code, reason = "copies memory that C programs have registered")]

use crate::barrier::{Purpose, note};
use crate::conflict::{Bounds, any_overlap};
use crate::error::{Error, Result};
use crate::memory::{self, Address, TINY};
use crate::misuse::{Misuse, Side};
use crate::outbox::{Message, Outbox};
use crate::process::{Health, Process};
use crate::slot_table::SlotTable;
use crate::team::{Team, parity};

impl Process {
    /// Ends the superstep: carries out all that the processes have queued.
    ///
    /// # Errors
    ///
    /// [`Error::Fatal`] if some process has left or failed.
    pub(crate) fn sync(&mut self) -> Result<()> {
        if self.health == Health::Over {
            return Err(Error::Fatal);
        }
        let notes = self.prepare();
        let ended = self.carry_out(notes);
        self.begin_superstep();
        ended?;
        self.check_health()
    }

    /// Reads the bytes that messages carry, makes slots active, and returns what the others are told.
    fn prepare(&mut self) -> u8 {
        let outbox = self.outbox();
        let mut notes = if outbox.gets.is_empty() { 0 } else { note::GETS };
        for message in outbox.puts.all_mut() {
            if message.size <= TINY {
                // SAFETY: The near end was resolved in a slot of the program, which keeps it valid until the sync
                // has ended.
                message.bytes = unsafe { memory::read_tiny(message.near, message.size) };
            } else {
                notes |= note::LONG_PUTS;
            }
        }
        notes |= self.register.notes();
        if self.resized_queue.is_some() {
            notes |= note::RESIZE;
        }
        self.member().publish_history(self.superstep, self.register.history());
        // SAFETY: Only this process replaces the table, and does not meanwhile.
        let globals = unsafe { self.team.members[self.pid].globals.read() };
        self.register.activate(globals);
        notes
    }

    fn carry_out(&mut self, notes: u8) -> Result<()> {
        let all = self.pass(Purpose::Sync, notes)?;
        let has = |note| all & note != 0;
        let view = View { team: &self.team, superstep: self.superstep };
        if Self::is_checked() {
            let checked = self.check(&view, has(note::REGISTERED), has(note::GETS));
            if let Err(misuse) = checked {
                self.misuse_in_sync(misuse);
            }
        }
        if has(note::GETS) {
            self.carry_out_gets();
            self.pass(Purpose::Sync, 0)?;
        }
        self.take_puts();
        self.carry_out_reductions();
        if has(note::LONG_PUTS) || has(note::RESIZE) {
            self.pass(Purpose::Sync, 0)?;
        }
        if has(note::RESIZE) {
            self.apply_resizes();
            self.pass(Purpose::Sync, 0)?;
        }
        Ok(())
    }

    /// Checks what this process has to do with: histories, numbers of messages, conflicts in its memory.
    fn check(
        &self,
        view: &View<'_>,
        registered: bool,
        gets: bool,
    ) -> std::result::Result<(), Misuse> {
        let members = &self.team.members;
        if registered && members[0].history(self.superstep) != self.register.history() {
            return Err(Misuse::RegistersDiffer);
        }
        let own = view.outbox(self.pid);
        let mut received = 0;
        for process in 0..self.team.size() {
            let outbox = view.outbox(process);
            received += outbox.puts.count(self.pid);
            if gets {
                received += outbox.gets.count(self.pid);
            }
        }
        let own_count = own.puts.count(self.pid) + own.gets.count(self.pid);
        let sent = self.queued;
        // A message to itself takes two places.
        if sent.max(received) + own_count > self.limit {
            let limit = self.limit;
            return Err(Misuse::TooManyMessages { sent, received, own: own_count, limit });
        }
        self.check_conflicts(view, gets)
    }

    /// Looks for memory of this process that puts read while it is written, or that gets read while gets write
    /// it. Gets read what puts overwrite before they do.
    fn check_conflicts(&self, view: &View<'_>, gets: bool) -> std::result::Result<(), Misuse> {
        let processes = 0..self.team.size();
        let globals = self.globals();
        let resolve = move |message: &Message, side| {
            let Message { slot, offset, size, .. } = *message;
            globals.resolve(slot, offset, size, side).map_or((Address(0), 0), |at| (at, size))
        };
        let checked = |message: &&Message| message.is_checked;
        let own = view.outbox(self.pid);
        let near = |message: &Message| (message.near, message.size);
        let arriving = || {
            processes.clone().flat_map(|process| {
                let puts = view.outbox(process).puts.chain(self.pid).filter(checked);
                puts.map(move |message| resolve(message, Side::Destination))
            })
        };
        let mut written = self.get_destinations;
        arriving().for_each(|(at, size)| written.add(at, size));
        if !self.put_sources.are_apart(written) {
            let reads = own.puts.all().iter().filter(checked).map(near);
            let got = own.gets.all().iter().filter(checked).map(near);
            if any_overlap(reads, arriving().chain(got)) {
                return Err(Misuse::ReadWriteConflict);
            }
        }
        if !gets || own.gets.is_empty() {
            return Ok(());
        }
        let leaving = || {
            processes.clone().flat_map(|process| {
                let gets = view.outbox(process).gets.chain(self.pid).filter(checked);
                gets.map(move |message| resolve(message, Side::Source))
            })
        };
        let mut read = Bounds::default();
        leaving().for_each(|(at, size)| read.add(at, size));
        if !read.are_apart(self.get_destinations) {
            let got = own.gets.all().iter().filter(checked).map(near);
            if any_overlap(leaving(), got) {
                return Err(Misuse::ReadWriteConflict);
            }
        }
        Ok(())
    }

    /// Copies what this process gets.
    fn carry_out_gets(&mut self) {
        let view = View { team: &self.team, superstep: self.superstep };
        let mut failed = None;
        for source in 0..self.team.size() {
            for message in view.outbox(self.pid).gets.chain(source) {
                let Message { near, slot, offset, size, .. } = *message;
                match view.globals(source).resolve(slot, offset, size, Side::Source) {
                    // SAFETY: Both ends were resolved in slots of the program, which keeps them valid until the
                    // sync has ended; whatever writes the source does so after the next barrier.
                    Ok(at) => unsafe { memory::copy(at, near, size) },
                    Err(misuse) => failed = Some(misuse),
                }
            }
        }
        if let Some(misuse) = failed {
            self.misuse_in_sync(misuse);
        }
    }

    /// Copies what others, and this process itself, put here.
    #[inline]
    fn take_puts(&mut self) {
        let view = View { team: &self.team, superstep: self.superstep };
        let globals = self.globals();
        let mut failed = None;
        for source in 0..self.team.size() {
            for message in view.outbox(source).puts.chain(self.pid) {
                let Message { near, slot, offset, size, bytes, .. } = message;
                match globals.resolve(*slot, *offset, *size, Side::Destination) {
                    // SAFETY: The far end was resolved in a slot of this process, which the program keeps valid
                    // until the sync has ended, and only this process writes there.
                    Ok(at) if *size <= TINY => unsafe { memory::write_tiny(bytes, at, *size) },
                    // SAFETY: As before; the near end was resolved in a slot of the program, and it is not
                    // changed before the next barrier.
                    Ok(at) => unsafe { memory::copy(*near, at, *size) },
                    Err(misuse) => failed = Some(misuse),
                }
            }
        }
        if let Some(misuse) = failed {
            self.misuse_in_sync(misuse);
        }
    }

    /// Folds what this process wants to know.
    fn carry_out_reductions(&mut self) {
        for reduction in std::mem::take(&mut self.reductions) {
            let view = View { team: &self.team, superstep: self.superstep };
            let snapshots = |process| {
                let mut snapshots = view.outbox(process).snapshots.iter();
                snapshots.find(|snapshot| snapshot.call == reduction.call)
            };
            if let Err(misuse) = reduction.carry_out(snapshots) {
                self.misuse_in_sync(misuse);
            }
        }
    }

    /// Replaces queue and register. Nobody reads them.
    fn apply_resizes(&mut self) {
        let member = &self.team.members[self.pid];
        // SAFETY: All processes are between two barriers between which nobody reads the table of another.
        let globals = unsafe { member.globals.write() };
        self.register.apply_resize(globals);
        let Some(resized) = self.resized_queue.take() else { return };
        self.limit = resized.limit;
        if let Some(outboxes) = resized.outboxes {
            self.room = resized.limit;
            for (outbox, new) in member.outboxes.iter().zip(outboxes) {
                // SAFETY: As for the table.
                *unsafe { outbox.write() } = new;
            }
        }
    }

    /// Begins the next superstep, with an empty outbox.
    fn begin_superstep(&mut self) {
        self.superstep += 1;
        self.queued = 0;
        self.put_sources = Bounds::default();
        self.get_destinations = Bounds::default();
        self.reductions.clear();
        self.outbox().clear();
    }
}

/// Shared parts of all processes, between the barrier at the end of a superstep and that of the next.
struct View<'t> {
    team: &'t Team,
    superstep: u64,
}

impl<'t> View<'t> {
    #[inline]
    fn outbox(&self, process: usize) -> &'t Outbox {
        let outbox = &self.team.members[process].outboxes[parity(self.superstep)];
        // SAFETY: The process has come to the barrier at the end of the superstep, and changes this outbox again
        // only when all have come to that of the next, or between two barriers of a resize.
        unsafe { outbox.read() }
    }

    #[inline]
    fn globals(&self, process: usize) -> &'t SlotTable {
        // SAFETY: The process replaces its table only between two barriers of a resize.
        unsafe { self.team.members[process].globals.read() }
    }
}
