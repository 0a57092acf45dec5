//! Process of a BSP program: its queue and its register.
//!
//! A process belongs to one thread. Operations are only queued; [`Process::sync`] carries them out.
#![allow(unsafe_code, reason = "the queue of a process is read by others between barriers")]

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use talpf_primitives::Parker;

use crate::barrier::{self, Purpose, note};
use crate::conflict::Bounds;
use crate::ends::{Far, Near};
use crate::error::{Error, Result};
use crate::memory::Address;
use crate::message_queue::{Message, MessageQueue, Unresolved};
use crate::misuse::{self, Misuse, Side};
use crate::reduction::Reduction;
use crate::register::Register;
use crate::selection::Selection;
use crate::slot_id::SlotId;
use crate::slot_table::{Extent, SlotState, SlotTable};
use crate::team::{Member, Team, parity};
use crate::view::View;

/// Ability of a process to go on with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Running,
    /// The process has failed, and the others learn so at the next barrier.
    Failed,
    /// All know that the team has failed; nobody comes to a barrier any more.
    Over,
}

/// Queue from the next sync on.
pub(crate) struct ResizedQueue {
    pub(crate) limit: usize,
    /// Queues with room for more, and for the addresses that puts read.
    pub(crate) queues: Option<([MessageQueue; 2], Vec<Address>)>,
}

/// Slots of the last operation of a superstep, which the next one is likely to be between, too. As they are in use,
/// this process cannot free them before the superstep ends.
#[derive(Clone, Copy)]
pub(crate) struct LastEnds {
    /// Near slot, other process, and far slot.
    of: (SlotId, u32, SlotId),
    near: Extent,
    far: Extent,
}

/// Process of a team.
pub(crate) struct Process {
    pub(crate) team: Arc<Team>,
    pub(crate) pid: usize,
    /// Number of processors that this process may use for programs of its own.
    pub(crate) processors: u32,
    pub(crate) health: Health,
    /// Number of the open superstep. The first one is 1, as slots that no message has used have 0.
    pub(crate) superstep: u64,
    pub(crate) register: Register,
    /// Number of messages that the queue has room for.
    pub(crate) limit: usize,
    /// Number of messages that the queue ever had memory for.
    pub(crate) room: usize,
    /// Number of messages that the program has queued in this superstep.
    pub(crate) queued: usize,
    pub(crate) last_ends: Option<LastEnds>,
    pub(crate) resized_queue: Option<ResizedQueue>,
    /// Bounds of the memory that puts of the program read.
    pub(crate) put_sources: Bounds,
    /// Addresses that they read.
    pub(crate) sources: Vec<Address>,
    /// Bounds of the memory that gets of the program write.
    pub(crate) get_destinations: Bounds,
    pub(crate) reductions: Vec<Reduction>,
    /// Number of collectives that were made for each selection.
    pub(crate) collectives: HashMap<Selection, u32>,
    /// Number of rounds of operations that are started at once.
    pub(crate) round: u64,
    /// Arrivals that a cached sync expects.
    pub(crate) cached_arrivals: Option<u64>,
    pub(crate) parker: Parker,
}

impl Process {
    /// Makes a process with room for no slot and no message.
    pub(crate) fn new(team: Arc<Team>, pid: usize, processors: u32) -> Result<Self> {
        Ok(Process {
            team,
            pid,
            processors,
            health: Health::Running,
            superstep: 1,
            register: Register::new()?,
            limit: 0,
            room: 0,
            queued: 0,
            last_ends: None,
            resized_queue: None,
            put_sources: Bounds::default(),
            sources: Vec::new(),
            get_destinations: Bounds::default(),
            reductions: Vec::new(),
            collectives: HashMap::new(),
            round: 0,
            cached_arrivals: None,
            parker: Parker::new(),
        })
    }

    /// Returns the shared part of this process.
    #[inline]
    pub(crate) fn member(&self) -> &Member {
        &self.team.members[self.pid]
    }

    /// Returns the queue of the open superstep.
    #[inline]
    pub(crate) fn queue(&mut self) -> &mut MessageQueue {
        let queue = &self.team.members[self.pid].queues[parity(self.superstep)];
        // SAFETY: Others read the queue of a superstep only after the barrier at its end, to which this process
        // has not come, and no more once they come to the barrier of the next, as all did before this superstep;
        // the process is borrowed while the reference lives.
        unsafe { queue.write() }
    }

    /// Returns the table of global slots.
    #[inline]
    pub(crate) fn globals(&self) -> &SlotTable {
        // SAFETY: Only this process replaces the table, with a reference to the process that is mutable.
        unsafe { self.member().globals.read() }
    }

    /// Sets the number of slots from the next sync on.
    pub(crate) fn resize_register(&mut self, limit: usize) -> Result<()> {
        self.register.resize(limit)
    }

    /// Sets the number of messages from the next sync on.
    pub(crate) fn resize_queue(&mut self, limit: usize) -> Result<()> {
        let queues = match limit > self.room {
            true => {
                let new = || MessageQueue::with_room(self.team.size(), limit);
                let mut sources = Vec::new();
                sources.try_reserve_exact(limit).map_err(|_| Error::OutOfMemory)?;
                Some(([new()?, new()?], sources))
            }
            false => None,
        };
        self.resized_queue = Some(ResizedQueue { limit, queues });
        Ok(())
    }

    /// Registers memory.
    pub(crate) fn register(
        &mut self,
        is_local: bool,
        address: Address,
        size: usize,
    ) -> std::result::Result<SlotId, Misuse> {
        // SAFETY: As in `globals`.
        let globals = unsafe { self.team.members[self.pid].globals.read() };
        self.register.register(globals, is_local, address, size)
    }

    /// Frees a slot.
    pub(crate) fn deregister(&mut self, slot: SlotId) -> std::result::Result<(), Misuse> {
        // SAFETY: As in `globals`.
        let globals = unsafe { self.team.members[self.pid].globals.read() };
        self.register.deregister(globals, slot, self.superstep)
    }

    /// Returns the address of the near end of an operation.
    #[inline]
    pub(crate) fn resolve(
        &self,
        near: Near,
        size: usize,
        side: Side,
    ) -> std::result::Result<Address, Misuse> {
        let table = self.register.table(self.globals(), near.slot);
        table.resolve(near.slot, near.offset, size, side)
    }

    /// Returns the address of the far end of an operation.
    #[inline]
    pub(crate) fn resolve_far(
        &self,
        far: Far,
        size: usize,
        side: Side,
    ) -> std::result::Result<Address, Misuse> {
        let Some(member) = self.team.members.get(far.pid as usize) else {
            return Err(Misuse::Pid { pid: far.pid, processes: self.team.size() });
        };
        // The other process may not have deregistered the slot yet.
        if self.globals().state(far.slot) != SlotState::Active || far.slot.is_local() {
            return Err(self.not_active(far.slot, side));
        }
        // SAFETY: The process replaces its table only between two barriers, to which this process would have to
        // come.
        let globals = unsafe { member.globals.read() };
        globals.resolve(far.slot, far.offset, size, side)
    }

    /// Returns the mistake in the use of a slot as that of another process.
    #[cold]
    fn not_active(&self, slot: SlotId, side: Side) -> Misuse {
        let state = self.register.table(self.globals(), slot).state(slot);
        match (state, slot.is_local()) {
            (SlotState::Free, _) => Misuse::UnknownSlot(slot.0, side),
            (_, true) => Misuse::LocalSlot(slot.0, side),
            (_, false) => Misuse::InactiveSlot(slot.0, side),
        }
    }

    /// Queues a put of the program.
    #[inline(always)]
    pub(crate) fn put(
        &mut self,
        source: Near,
        destination: Far,
        size: usize,
    ) -> std::result::Result<(), Misuse> {
        let (near, far) = match self.admit(source, destination, size) {
            Some(ends) => ends,
            None => {
                self.admit_slow((source, Side::Source), (destination, Side::Destination), size)?
            }
        };
        self.put_sources.add(near, size);
        self.sources.push(near);
        self.queue().puts.push(destination.pid as usize, Message::new(near, far, size));
        Ok(())
    }

    /// Queues a get of the program.
    #[inline(always)]
    pub(crate) fn get(
        &mut self,
        source: Far,
        destination: Near,
        size: usize,
    ) -> std::result::Result<(), Misuse> {
        let (near, far) = match self.admit(destination, source, size) {
            Some(ends) => ends,
            None => {
                self.admit_slow((destination, Side::Destination), (source, Side::Source), size)?
            }
        };
        self.get_destinations.add(near, size);
        self.queue().gets.push(source.pid as usize, Message::new(near, far, size));
        Ok(())
    }

    /// Counts an operation, and returns the addresses of its ends, if there is room for it and both are inside of
    /// active slots.
    #[inline(always)]
    fn admit(&mut self, near: Near, far: Far, size: usize) -> Option<(Address, Address)> {
        let of = (near.slot, far.pid, far.slot);
        let last = self.last_ends.filter(|last| last.of == of);
        let is_noted = last.is_some();
        let ends = last.or_else(|| self.find_ends(near.slot, far))?;
        let found = (ends.near.at(near.offset, size)?, ends.far.at(far.offset, size)?);
        if self.queued >= self.limit {
            return None;
        }
        self.queued += 1;
        if !is_noted {
            self.last_ends = Some(ends);
            self.register.note_use(near.slot, self.superstep);
            self.register.note_use(far.slot, self.superstep);
        }
        Some(found)
    }

    /// Finds the slots of an operation, if they are active.
    fn find_ends(&self, near: SlotId, far: Far) -> Option<LastEnds> {
        let own = self.team.members.get(self.pid)?;
        let other = self.team.members.get(far.pid as usize)?;
        // SAFETY: As in `globals`.
        let own_globals = unsafe { own.globals.read() };
        // SAFETY: As in `resolve_far`.
        let globals = unsafe { other.globals.read() };
        let near_end = self.register.table(own_globals, near).find(near)?;
        let far_end = globals.find(far.slot)?;
        // The other process may not have deregistered the slot yet.
        if far.slot.is_local() || !own_globals.is_active(far.slot) {
            return None;
        }
        Some(LastEnds { of: (near, far.pid, far.slot), near: near_end, far: far_end })
    }

    /// Admits an operation that [`Process::admit`] has not, or returns the mistake in it.
    #[cold]
    fn admit_slow(
        &mut self,
        (near, near_side): (Near, Side),
        (far, far_side): (Far, Side),
        size: usize,
    ) -> std::result::Result<(Address, Address), Misuse> {
        if self.queued >= self.limit {
            return Err(Misuse::QueueFull(self.limit));
        }
        let near_end = self.resolve(near, size, near_side)?;
        let far_end = self.resolve_far(far, size, far_side)?;
        self.queued += 1;
        self.register.note_use(near.slot, self.superstep);
        self.register.note_use(far.slot, self.superstep);
        Ok((near_end, far_end))
    }

    /// Queues an operation of a collective, for which there is always room, and whose slots need not be active.
    pub(crate) fn queue_unresolved(
        &mut self,
        is_put: bool,
        near: Near,
        far: Far,
        size: usize,
    ) -> std::result::Result<(), Misuse> {
        let side = if is_put { Side::Source } else { Side::Destination };
        let near = self.resolve(near, size, side)?;
        self.queue().unresolved.push(Unresolved { is_put, near, far, size });
        Ok(())
    }

    /// Publishes a record, for the processes that sync with this one.
    pub(crate) fn publish(&mut self, record: Arc<dyn Any + Send + Sync>) {
        self.queue().published = Some(record);
    }

    /// Returns the record that a process has published in the superstep that has just ended, if it is of this
    /// type.
    pub(crate) fn published<T: Send + Sync + 'static>(&self, pid: usize) -> Option<Arc<T>> {
        let queue = View::new(&self.team, self.superstep - 1).queue(pid);
        Arc::downcast(queue.published.clone()?).ok()
    }

    /// Notes a failure of this process, and returns the error. The others learn of it at the next barrier.
    pub(crate) fn fail(&mut self) -> Error {
        if self.health == Health::Running {
            self.health = Health::Failed;
        }
        Error::Fatal
    }

    /// Returns an error if the process has failed.
    pub(crate) fn check_health(&self) -> Result<()> {
        if self.health == Health::Running { Ok(()) } else { Err(Error::Fatal) }
    }

    /// Comes to the barrier. Returns what all have noted.
    pub(crate) fn pass(&mut self, purpose: Purpose, notes: u8) -> Result<u8> {
        if self.health == Health::Over {
            return Err(Error::Fatal);
        }
        let failed = if self.health == Health::Failed { note::FAILED } else { 0 };
        let notes = notes | failed;
        let team = &self.team;
        let outcome = barrier::pass(&team.barrier, purpose, notes, team.patience, &self.parker);
        if outcome & note::FAILED != 0 {
            self.health = Health::Over;
            return Err(Error::Fatal);
        }
        Ok(outcome)
    }

    /// Makes a process in a fresh context, as all others do.
    ///
    /// # Errors
    ///
    /// [`Error::Fatal`] if some other process does something else.
    pub(crate) fn rehook(&mut self) -> Result<Self> {
        self.pass(Purpose::Rehook, 0)?;
        self.check_health()?;
        match self.team.join_fresh() {
            Ok(team) => Process::new(team, self.pid, self.processors),
            // The others may have got a team.
            Err(_) => Err(self.fail()),
        }
    }

    /// Ends the process, as its program has returned. All must do so in the same superstep.
    pub(crate) fn leave(&mut self) -> Result<()> {
        self.team.note_leaving();
        self.pass(Purpose::Leave, 0).map(drop)
    }

    /// Reports a mistake in a call of the program, or returns the error for it.
    #[cold]
    pub(crate) fn misuse(&self, function: &str, misuse: Misuse) -> Error {
        misuse.found(function, self.pid)
    }

    /// Reports a mistake that has come to light in a sync, or fails.
    #[cold]
    pub(crate) fn misuse_in_sync(&mut self, misuse: Misuse) {
        misuse.found("lpf_sync", self.pid);
        self.fail();
    }

    /// Returns `true` if calls are checked.
    pub(crate) fn is_checked() -> bool {
        misuse::is_checked()
    }
}
