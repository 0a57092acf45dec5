//! Entries in first-in-first-out lists by selection, each in one list or in several.
//!
//! Entries live in slots; the lists are linked through them, so that an entry leaves all its lists
//! at once wherever it stands in them.

use std::collections::HashMap;

use super::key::{BuildFold, Selection};

const NONE: u32 = u32::MAX;
/// Lists without entries that are kept before they are cleared away.
const EMPTY_LISTS: usize = 1024;

/// An entry, for as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EntryId {
    slot: u32,
    generation: u32,
}

impl EntryId {
    pub(crate) fn to_u64(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    pub(crate) fn slot(self) -> u32 {
        self.slot
    }

    pub(crate) fn from_u64(number: u64) -> Self {
        EntryId { slot: number as u32, generation: (number >> 32) as u32 }
    }
}

/// See the module text. An entry is in `N` lists at most.
pub(crate) struct Lists<T, const N: usize> {
    slots: Vec<Slot<T, N>>,
    free: Vec<u32>,
    lists: HashMap<Selection, Ends, BuildFold>,
    next_stamp: u64,
}

struct Slot<T, const N: usize> {
    generation: u32,
    entry: Option<Entry<T, N>>,
}

struct Entry<T, const N: usize> {
    stamp: u64,
    value: T,
    /// One for every list it is in.
    links: [Link; N],
    count: u8,
}

/// The neighbours in one list.
#[derive(Clone, Copy)]
struct Link {
    list: Selection,
    before: u32,
    after: u32,
}

#[derive(Clone, Copy)]
struct Ends {
    first: u32,
    last: u32,
}

impl<T, const N: usize> Default for Lists<T, N> {
    fn default() -> Self {
        Lists { slots: Vec::new(), free: Vec::new(), lists: HashMap::default(), next_stamp: 0 }
    }
}

impl<T, const N: usize> Lists<T, N> {
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Lists that are kept, with and without entries.
    #[cfg(all(test, not(talpf_loom)))]
    pub(crate) fn list_count(&self) -> usize {
        self.lists.len()
    }

    /// Adds an entry at the end of a list.
    #[inline]
    pub(crate) fn push(&mut self, list: Selection, value: T) -> EntryId {
        let stamp = self.next_stamp;
        self.next_stamp += 1;
        let unlinked = Link { list, before: NONE, after: NONE };
        let entry = Entry { stamp, value, links: [unlinked; N], count: 0 };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize].entry = Some(entry);
                slot
            }
            None => {
                self.slots.push(Slot { generation: 0, entry: Some(entry) });
                (self.slots.len() - 1) as u32
            }
        };
        self.link(slot, list);
        EntryId { slot, generation: self.slots[slot as usize].generation }
    }

    /// Adds an entry at the end of one more list.
    pub(crate) fn also(&mut self, id: EntryId, list: Selection) {
        if self.entry(id).is_some() {
            self.link(id.slot, list);
        }
    }

    fn link(&mut self, slot: u32, list: Selection) {
        if self.lists.len() >= 2 * self.len() + EMPTY_LISTS {
            self.lists.retain(|_, ends| ends.first != NONE);
        }
        let ends = self.lists.entry(list).or_insert(Ends { first: NONE, last: NONE });
        let before = std::mem::replace(&mut ends.last, slot);
        if before == NONE {
            ends.first = slot;
        } else if let Some(link) = link_of(&mut self.slots, before, list) {
            link.after = slot;
        }
        if let Some(entry) = &mut self.slots[slot as usize].entry {
            entry.links[usize::from(entry.count)] = Link { list, before, after: NONE };
            entry.count += 1;
        }
    }

    /// The first entry of a list, and its stamp: lower ones were pushed earlier.
    #[inline]
    pub(crate) fn first(&self, list: &Selection) -> Option<(EntryId, u64)> {
        let slot = self.lists.get(list).map_or(NONE, |ends| ends.first);
        let found = self.slots.get(slot as usize)?;
        let stamp = found.entry.as_ref()?.stamp;
        Some((EntryId { slot, generation: found.generation }, stamp))
    }

    /// The last entry of a list.
    pub(crate) fn last(&self, list: &Selection) -> Option<(EntryId, &T)> {
        let slot = self.lists.get(list).map_or(NONE, |ends| ends.last);
        let found = self.slots.get(slot as usize)?;
        let value = &found.entry.as_ref()?.value;
        Some((EntryId { slot, generation: found.generation }, value))
    }

    pub(crate) fn get_mut(&mut self, id: EntryId) -> Option<&mut T> {
        self.entry(id)?;
        Some(&mut self.slots[id.slot as usize].entry.as_mut()?.value)
    }

    #[inline]
    fn entry(&self, id: EntryId) -> Option<&Entry<T, N>> {
        let slot = self.slots.get(id.slot as usize)?;
        slot.entry.as_ref().filter(|_| slot.generation == id.generation)
    }

    #[inline]
    pub(crate) fn get(&self, id: EntryId) -> Option<&T> {
        self.entry(id).map(|entry| &entry.value)
    }

    /// Takes an entry out of all its lists.
    #[inline]
    pub(crate) fn remove(&mut self, id: EntryId) -> Option<T> {
        self.entry(id)?;
        let slot = &mut self.slots[id.slot as usize];
        let entry = slot.entry.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.slot);
        for &Link { list, before, after } in &entry.links[..usize::from(entry.count)] {
            if before != NONE
                && let Some(link) = link_of(&mut self.slots, before, list)
            {
                link.after = after;
            }
            if after != NONE
                && let Some(link) = link_of(&mut self.slots, after, list)
            {
                link.before = before;
            }
            if (before == NONE || after == NONE)
                && let Some(ends) = self.lists.get_mut(&list)
            {
                if before == NONE {
                    ends.first = after;
                }
                if after == NONE {
                    ends.last = before;
                }
            }
        }
        Some(entry.value)
    }

    /// All entries with their stamps, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (EntryId, u64, &T)> {
        self.slots.iter().enumerate().filter_map(|(slot, found)| {
            let entry = found.entry.as_ref()?;
            let id = EntryId { slot: slot as u32, generation: found.generation };
            Some((id, entry.stamp, &entry.value))
        })
    }

    /// Takes all entries out.
    pub(crate) fn drain(&mut self) -> Vec<T> {
        let ids: Vec<_> = self.iter().map(|(id, ..)| id).collect();
        ids.into_iter().filter_map(|id| self.remove(id)).collect()
    }
}

/// The neighbours of an entry in one of its lists.
#[inline]
fn link_of<T, const N: usize>(
    slots: &mut [Slot<T, N>],
    slot: u32,
    list: Selection,
) -> Option<&mut Link> {
    let entry = slots.get_mut(slot as usize)?.entry.as_mut()?;
    entry.links[..usize::from(entry.count)].iter_mut().find(|link| link.list == list)
}
