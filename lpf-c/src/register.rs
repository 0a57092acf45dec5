//! Memory register of a process: its slots, and the room for them.

use crate::barrier::note;
use crate::error::Result;
use crate::memory::Address;
use crate::misuse::Misuse;
use crate::slot_id::SlotId;
use crate::slot_table::{SlotState, SlotTable};

/// Free slots of a table, and the supersteps in which the others were last used.
#[derive(Default)]
struct Usage {
    /// Freed indices; the last one is used first, on all processes alike.
    freed: Vec<usize>,
    /// Number of slots that were ever used.
    begun: usize,
    /// Superstep of the last message of each slot.
    last_use: Vec<u64>,
}

impl Usage {
    fn take(&mut self) -> usize {
        self.freed.pop().unwrap_or_else(|| {
            self.begun += 1;
            self.last_use.push(0);
            self.begun - 1
        })
    }
}

/// Part of a register that only its process reaches. The table of global slots is with the shared part of the
/// process, so that others resolve addresses in it.
pub(crate) struct Register {
    local: SlotTable,
    usage: [Usage; 2],
    /// Global slots that become active at the next sync.
    inactive: Vec<usize>,
    /// Number of slots in use.
    used: usize,
    limit: usize,
    /// Limit and tables from the next sync on.
    resized: Option<(usize, Option<[SlotTable; 2]>)>,
    /// Summary of all changes of global slots, to be compared with those of the others.
    history: u64,
    is_changed: bool,
}

impl Register {
    pub(crate) fn new() -> Result<Self> {
        Ok(Register {
            local: SlotTable::new(0)?,
            usage: [Usage::default(), Usage::default()],
            inactive: Vec::new(),
            used: 0,
            limit: 0,
            resized: None,
            history: 0,
            is_changed: false,
        })
    }

    /// Sets the number of slots from the next sync on. Changes nothing on an error.
    pub(crate) fn resize(&mut self, limit: usize) -> Result<()> {
        // Slots of both kinds share the room: each table holds all.
        let grows = limit > self.local.capacity();
        let tables = match grows {
            true => Some([SlotTable::new(limit)?, SlotTable::new(limit)?]),
            false => None,
        };
        self.resized = Some((limit, tables));
        Ok(())
    }

    /// Returns the notes of the next sync.
    pub(crate) fn notes(&self) -> u8 {
        let resize = if self.resized.is_some() { note::RESIZE } else { 0 };
        let registered = if self.is_changed { note::REGISTERED } else { 0 };
        resize | registered
    }

    pub(crate) fn history(&self) -> u64 {
        self.history
    }

    /// Applies a resize. `globals` is the table of global slots, which nobody reads meanwhile.
    pub(crate) fn apply_resize(&mut self, globals: &mut SlotTable) {
        let Some((limit, tables)) = self.resized.take() else { return };
        self.limit = limit;
        if let Some([local, global]) = tables {
            local.copy_from(&self.local);
            global.copy_from(globals);
            self.local = local;
            *globals = global;
        }
    }

    /// Makes global slots active, as a superstep ends.
    pub(crate) fn activate(&mut self, globals: &SlotTable) {
        self.inactive.drain(..).for_each(|index| globals.activate(index));
        self.is_changed = false;
    }

    /// Registers memory.
    pub(crate) fn register(
        &mut self,
        globals: &SlotTable,
        is_local: bool,
        address: Address,
        size: usize,
    ) -> std::result::Result<SlotId, Misuse> {
        if self.used >= self.limit {
            return Err(Misuse::RegisterFull(self.limit));
        }
        let index = self.usage[usize::from(is_local)].take();
        self.used += 1;
        let generation = if is_local {
            self.local.fill(index, address, size, SlotState::Active)
        } else {
            self.inactive.push(index);
            self.note_change(u64::MAX);
            globals.fill(index, address, size, SlotState::Inactive)
        };
        Ok(SlotId::new(is_local, index, generation))
    }

    /// Frees a slot.
    pub(crate) fn deregister(
        &mut self,
        globals: &SlotTable,
        slot: SlotId,
        superstep: u64,
    ) -> std::result::Result<(), Misuse> {
        let table = if slot.is_local() { &self.local } else { globals };
        if table.state(slot) == SlotState::Free {
            return Err(Misuse::UnknownSlot(slot.0, crate::misuse::Side::Source));
        }
        let usage = &mut self.usage[usize::from(slot.is_local())];
        if usage.last_use[slot.index()] == superstep {
            return Err(Misuse::SlotInUse(slot.0));
        }
        table.free(slot.index());
        usage.freed.push(slot.index());
        self.used -= 1;
        if !slot.is_local() {
            self.inactive.retain(|index| *index != slot.index());
            self.note_change(slot.0 as u64);
        }
        Ok(())
    }

    /// Returns the table that a slot of this process is in.
    #[inline]
    pub(crate) fn table<'s>(&'s self, globals: &'s SlotTable, slot: SlotId) -> &'s SlotTable {
        if slot.is_local() { &self.local } else { globals }
    }

    /// Notes that a message of this superstep uses a slot that is not free.
    #[inline]
    pub(crate) fn note_use(&mut self, slot: SlotId, superstep: u64) {
        let usage = &mut self.usage[usize::from(slot.is_local())];
        if let Some(last) = usage.last_use.get_mut(slot.index()) {
            *last = superstep;
        }
    }

    fn note_change(&mut self, change: u64) {
        self.history = (self.history ^ change).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
        self.is_changed = true;
    }
}
