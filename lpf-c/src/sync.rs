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
//! before the first barrier, and its queue stays until the process has come to the barrier of the next
//! superstep, so nobody waits for such puts to be taken.
#![allow(unsafe_code, reason = "copies memory that C programs have registered")]

use crate::barrier::{Purpose, note};
use crate::conflict::Bounds;
use crate::error::{Error, Result};
use crate::memory::{self, TINY};
use crate::misuse::{Misuse, Side};
use crate::process::{Health, Process};
use crate::view::View;

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

    /// Reads the bytes that messages carry, makes slots active, and returns the notes of this process.
    fn prepare(&mut self) -> u8 {
        let queue = self.queue();
        let mut notes = if queue.gets.len() == 0 { 0 } else { note::GETS };
        for message in queue.puts.all_mut() {
            if message.size <= TINY {
                // SAFETY: The near end was resolved in a slot of the program, which keeps it valid until the sync
                // has ended.
                let bytes = unsafe { memory::read_tiny(message.near(), message.size) };
                message.set_bytes(bytes);
            } else {
                notes |= note::LONG_PUTS;
            }
        }
        for operation in &queue.unresolved {
            notes |= if operation.is_put { note::LONG_PUTS } else { note::GETS };
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
        if Self::is_checked() {
            self.note_mistake(self.check(has(note::REGISTERED)));
        }
        if has(note::GETS) {
            self.note_mistake(self.carry_out_gets());
            self.pass(Purpose::Sync, 0)?;
        }
        let written = self.take_puts();
        self.note_mistake(self.take_unresolved());
        if Self::is_checked() {
            self.note_mistake(self.check_conflicts(written, has(note::GETS)));
        }
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

    /// Reports a mistake that has come to light, or lets the process fail.
    #[inline]
    fn note_mistake(&mut self, result: std::result::Result<(), Misuse>) {
        if let Err(misuse) = result {
            self.misuse_in_sync(misuse);
        }
    }

    /// Copies what this process gets.
    fn carry_out_gets(&self) -> std::result::Result<(), Misuse> {
        let view = View::new(&self.team, self.superstep);
        let own = view.queue(self.pid);
        for message in own.gets.all() {
            // SAFETY: Both ends were resolved in slots of the program, which keeps them valid until the sync has
            // ended; whatever writes the source does so after the next barrier.
            unsafe { memory::copy(message.far, message.near(), message.size) };
        }
        for get in own.unresolved.iter().filter(|operation| !operation.is_put) {
            let globals = view.globals(get.far.pid as usize);
            let at = globals.resolve(get.far.slot, get.far.offset, get.size, Side::Source)?;
            // SAFETY: As before.
            unsafe { memory::copy(at, get.near, get.size) };
        }
        Ok(())
    }

    /// Copies what others, and this process itself, put here. Returns the bounds of what was written, if calls are
    /// checked.
    #[inline]
    fn take_puts(&self) -> Bounds {
        let view = View::new(&self.team, self.superstep);
        let is_checked = Self::is_checked();
        let mut written = Bounds::default();
        for source in 0..self.team.size() {
            for message in view.queue(source).puts.chain(self.pid) {
                let size = message.size;
                if size <= TINY {
                    // SAFETY: The far end was resolved in a slot of this process, which the program keeps valid
                    // until the sync has ended, and only this process writes there.
                    unsafe { memory::write_tiny(message.bytes(), message.far, size) };
                } else {
                    // SAFETY: As before; the near end was resolved in a slot of the program, and it is not
                    // changed before the next barrier.
                    unsafe { memory::copy(message.near(), message.far, size) };
                }
                if is_checked {
                    written.add(message.far, size);
                }
            }
        }
        written
    }

    /// Copies what collectives of others put here.
    fn take_unresolved(&self) -> std::result::Result<(), Misuse> {
        let view = View::new(&self.team, self.superstep);
        let globals = self.globals();
        for source in 0..self.team.size() {
            for operation in &view.queue(source).unresolved {
                let (far, size) = (operation.far, operation.size);
                if operation.is_put && far.pid as usize == self.pid {
                    let at = globals.resolve(far.slot, far.offset, size, Side::Destination)?;
                    // SAFETY: As for the long puts of the program.
                    unsafe { memory::copy(operation.near, at, size) };
                }
            }
        }
        Ok(())
    }

    /// Folds what this process wants to know.
    fn carry_out_reductions(&mut self) {
        for reduction in std::mem::take(&mut self.reductions) {
            let view = View::new(&self.team, self.superstep);
            let snapshots = |process| {
                let mut snapshots = view.queue(process).snapshots.iter();
                snapshots.find(|snapshot| snapshot.call == reduction.call)
            };
            self.note_mistake(reduction.carry_out(snapshots));
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
        member.publish_limit(resized.limit);
        if let Some((queues, sources)) = resized.queues {
            self.room = resized.limit;
            self.sources = sources;
            for (queue, new) in member.queues.iter().zip(queues) {
                // SAFETY: As for the table.
                *unsafe { queue.write() } = new;
            }
        }
    }

    /// Begins the next superstep, with an empty queue.
    fn begin_superstep(&mut self) {
        self.superstep += 1;
        self.queued = 0;
        self.last_ends = None;
        self.put_sources = Bounds::default();
        self.sources.clear();
        self.get_destinations = Bounds::default();
        self.reductions.clear();
        self.queue().clear();
    }
}
