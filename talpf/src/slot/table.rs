//! The table of the slots of one rank.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ibverbs_sim::ProtectionDomain;
use parking_lot::RwLock;
use smallvec::SmallVec;
use talpf_runtime::ArrayLabel;

use super::{Registrable, Slot, Use};
use crate::all_gather::Gathered;
use crate::error::Error;

/// The end of an error about an array without a windowed slot.
const NOT_WINDOWED: &str = ": a window needs `register_global`, and raw slots have none";

/// The slots of one rank.
pub(crate) struct SlotTable {
    /// The number of the run.
    run: u64,
    slots: RwLock<Slots>,
    /// Number of slots that are being registered together with other ranks.
    prepared: AtomicUsize,
    limit: AtomicUsize,
    /// Set once the run is over.
    ended: AtomicBool,
}

/// The registered slots.
///
/// **Cost**: of a search, the logarithm of their number.
#[derive(Default)]
struct Slots {
    /// Slots by array, and in the order of registration.
    by_array: BTreeMap<(u64, u64), Arc<Slot>>,
    /// Global slots by number.
    global: BTreeMap<u32, Arc<Slot>>,
    /// Number of slots that were ever added.
    added: u64,
}

impl Slots {
    fn add(&mut self, slot: &Arc<Slot>) {
        self.by_array.insert((slot.array, self.added), Arc::clone(slot));
        self.added += 1;
        if slot.usage != Use::Local {
            self.global.insert(slot.number, Arc::clone(slot));
        }
    }

    /// Removes a slot. The caller drops what is returned without the lock.
    fn remove(&mut self, slot: &Arc<Slot>) -> Option<[Option<Arc<Slot>>; 2]> {
        let known = self.of_array(slot.array).find(|(_, known)| Arc::ptr_eq(known, slot));
        let key = known.map(|(key, _)| *key)?;
        let global = if slot.usage == Use::Local { None } else { self.global.remove(&slot.number) };
        Some([self.by_array.remove(&key), global])
    }

    /// Iterates over the slots of an array.
    #[inline]
    fn of_array(&self, array: u64) -> impl Iterator<Item = (&(u64, u64), &Arc<Slot>)> {
        self.by_array.range((array, 0)..).take_while(move |(key, _)| key.0 == array)
    }
}

/// A global slot before the other ranks have registered theirs. Its drop leaves the table
/// unchanged.
pub(crate) struct Prepared<'t> {
    table: &'t SlotTable,
    slot: Option<Slot>,
}

impl Prepared<'_> {
    /// Encodes the descriptor for the peers.
    pub(crate) fn descriptor(&self) -> Vec<u8> {
        self.slot.as_ref().map_or_else(Vec::new, |slot| slot.descriptor.to_bytes())
    }

    /// Adds the slot to the table, with the descriptors of all ranks.
    ///
    /// **Errors**: slots that do not match, at all ranks.
    pub(crate) fn publish(mut self, gathered: &Gathered) -> Result<Arc<Slot>, Error> {
        let slot = self.slot.take().ok_or(Error::RunEnded)?.with_peers(gathered)?;
        let slot = Arc::new(slot);
        self.table.slots.write().add(&slot);
        Ok(slot)
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        self.table.prepared.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SlotTable {
    pub(crate) fn new(run: u64, limit: usize) -> Self {
        SlotTable {
            run,
            slots: RwLock::default(),
            prepared: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
            ended: AtomicBool::new(false),
        }
    }

    fn check_run(&self) -> Result<(), Error> {
        if self.ended.load(Ordering::Relaxed) { Err(Error::RunEnded) } else { Ok(()) }
    }

    pub(crate) fn set_limit(&self, limit: usize) -> Result<(), Error> {
        let used = self.used();
        if limit < used {
            let (value, limit) = (limit as u64, used as u64);
            let what = "memory register size below slots in use";
            return Err(Error::Limit { what, value, limit });
        }
        self.limit.store(limit, Ordering::Relaxed);
        Ok(())
    }

    fn used(&self) -> usize {
        self.slots.read().by_array.len() + self.prepared.load(Ordering::Relaxed)
    }

    fn check_room(&self, used: usize) -> Result<(), Error> {
        self.check_run()?;
        let limit = self.limit.load(Ordering::Relaxed);
        if used >= limit {
            let (value, limit) = (used as u64 + 1, limit as u64);
            return Err(Error::Limit { what: "number of memory slots", value, limit });
        }
        Ok(())
    }

    /// Registers an array for this rank's own operations.
    pub(crate) fn add_local<A: Registrable>(
        &self,
        domain: &ProtectionDomain,
        array: &A,
    ) -> Result<Arc<Slot>, Error> {
        self.check_room(self.used())?;
        let slot = Arc::new(Slot::new(domain, array, self.run, Use::Local)?);
        self.slots.write().add(&slot);
        Ok(slot)
    }

    /// Registers an array that peers use as well.
    pub(crate) fn prepare_global<A: Registrable>(
        &self,
        domain: &ProtectionDomain,
        array: &A,
        usage: Use,
    ) -> Result<Prepared<'_>, Error> {
        self.prepared.fetch_add(1, Ordering::Relaxed);
        let mut prepared = Prepared { table: self, slot: None };
        self.check_room(self.used() - 1)?;
        prepared.slot = Some(Slot::new(domain, array, self.run, usage)?);
        Ok(prepared)
    }

    /// Removes a slot. Its memory is deregistered when the last handle is dropped.
    pub(crate) fn remove(&self, slot: &Arc<Slot>) -> Result<(), Error> {
        if slot.run != self.run {
            return Err(Error::SlotOfOtherRun { slot: slot.number });
        }
        let mut slots = self.slots.write();
        let removed = slots.remove(slot).ok_or(Error::NoSuchSlot { slot: slot.number })?;
        slot.deregistered.store(true, Ordering::Relaxed);
        drop(slots);
        drop(removed);
        Ok(())
    }

    /// Drops all slots, at the end of the run.
    pub(crate) fn clear(&self) {
        self.ended.store(true, Ordering::Relaxed);
        let slots = std::mem::take(&mut *self.slots.write());
        drop(slots);
    }

    /// Returns a slot of an array, under which the device may use it while the slot is kept.
    pub(crate) fn of_array(&self, array: u64) -> Option<Arc<Slot>> {
        self.slots.read().of_array(array).next().map(|(_, slot)| Arc::clone(slot))
    }

    /// Returns the global slot with a number.
    ///
    /// **Errors**: no such slot; the run has ended.
    pub(crate) fn numbered(&self, number: u32) -> Result<Arc<Slot>, Error> {
        self.check_run()?;
        let found = self.slots.read().global.get(&number).cloned();
        found.ok_or(Error::NoSuchSlot { slot: number })
    }

    /// Returns the windowed slot of each array that has one.
    pub(crate) fn windows(&self) -> SmallVec<[Arc<Slot>; 4]> {
        let slots = self.slots.read();
        let windowed = slots.global.values().filter(|slot| slot.usage == Use::Windowed);
        let mut windowed: SmallVec<[_; 4]> = windowed.cloned().collect();
        windowed.sort_by_key(|slot| slot.array);
        windowed.dedup_by_key(|slot| slot.array);
        windowed
    }

    /// Calls `read` with the windowed slot of an array.
    pub(crate) fn windowed<R>(
        &self,
        array: u64,
        read: impl FnOnce(&Arc<Slot>) -> R,
    ) -> Result<R, Error> {
        let slots = self.slots.read();
        let mut of_array = slots.of_array(array).map(|(_, slot)| slot);
        if let Some(slot) = of_array.find(|slot| slot.usage == Use::Windowed) {
            return Ok(read(slot));
        }
        self.check_run()?;
        let (array, why) = (ArrayLabel::of_id(array), NOT_WINDOWED);
        Err(Error::NotRegistered { array, why })
    }
}
