//! Entries in first-in-first-out lists by selection, each in one list or in several.
//!
//! Entries are in slots; the lists are linked through them, so that an entry is removed from all
//! its lists in constant time. Lists have numbers, which entries keep, so only finding a list by
//! its selection needs a hash; recently found lists are tried first.

use std::collections::HashMap;

use super::key::{BuildFold, Selection};

const NONE: u32 = u32::MAX;
/// Length of the cache of recently found lists, a power of two.
const RECENT: usize = 16;
/// Number of empty lists that are kept before they are removed.
const EMPTY_LISTS: usize = 1024;

/// Number of an entry, valid until the entry is removed.
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

/// Lists by selection. An entry is in at most `N` lists.
pub(crate) struct Lists<T, const N: usize> {
    slots: Vec<Slot<T, N>>,
    free: Vec<u32>,
    /// Lists by number, some of them unused.
    lists: Vec<List>,
    /// Numbers of the lists in use.
    numbers: HashMap<Selection, u32, BuildFold>,
    /// Numbers of the unused lists.
    unused: Vec<u32>,
    /// Cache of recently found lists: numbers by a few bits of the selection.
    recent: [u32; RECENT],
    next_stamp: u64,
}

struct Slot<T, const N: usize> {
    generation: u32,
    entry: Option<Entry<T, N>>,
}

struct Entry<T, const N: usize> {
    stamp: u64,
    value: T,
    /// A link for each list that the entry is in.
    links: [Link; N],
    count: u8,
}

/// Neighbours of an entry in one list.
#[derive(Clone, Copy)]
struct Link {
    list: u32,
    before: u32,
    after: u32,
}

struct List {
    selection: Selection,
    first: u32,
    last: u32,
}

impl<T, const N: usize> Default for Lists<T, N> {
    fn default() -> Self {
        Lists {
            slots: Vec::new(),
            free: Vec::new(),
            lists: Vec::new(),
            numbers: HashMap::default(),
            unused: Vec::new(),
            recent: [NONE; RECENT],
            next_stamp: 0,
        }
    }
}

impl<T, const N: usize> Lists<T, N> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Lists that are kept, with and without entries.
    #[cfg(all(test, not(talpf_loom)))]
    pub(crate) fn list_count(&self) -> usize {
        self.numbers.len()
    }

    /// Adds an entry at the end of a list.
    #[inline]
    pub(crate) fn push(&mut self, list: &Selection, value: T) -> EntryId {
        let stamp = self.next_stamp;
        self.next_stamp += 1;
        let unlinked = Link { list: NONE, before: NONE, after: NONE };
        let entry = Entry { stamp, value, links: [unlinked; N], count: 0 };
        let slot = match self.free.pop() {
            Some(slot) => {
                // Free slots are empty: nothing is dropped.
                self.slots[slot as usize].entry.get_or_insert(entry);
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
    pub(crate) fn append_to(&mut self, id: EntryId, list: &Selection) {
        if self.entry(id).is_some() {
            self.link(id.slot, list);
        }
    }

    #[inline]
    fn link(&mut self, slot: u32, selection: &Selection) {
        let list = match self.find(selection) {
            Some(list) => list,
            None => self.add_list(selection),
        };
        let ends = &mut self.lists[list as usize];
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

    /// Returns the number of a list.
    #[inline]
    fn find(&mut self, selection: &Selection) -> Option<u32> {
        let recent = self.recent[selection.place(RECENT)];
        match self.lists.get(recent as usize) {
            Some(list) if list.selection == *selection => Some(recent),
            _ => self.find_cold(selection),
        }
    }

    fn find_cold(&mut self, selection: &Selection) -> Option<u32> {
        let number = *self.numbers.get(selection)?;
        self.recent[selection.place(RECENT)] = number;
        Some(number)
    }

    #[cold]
    fn add_list(&mut self, selection: &Selection) -> u32 {
        if self.numbers.len() >= 2 * self.len() + EMPTY_LISTS {
            self.clear_lists();
        }
        let list = List { selection: *selection, first: NONE, last: NONE };
        let number = match self.unused.pop() {
            Some(number) => {
                self.lists[number as usize] = list;
                number
            }
            None => {
                self.lists.push(list);
                (self.lists.len() - 1) as u32
            }
        };
        self.numbers.insert(*selection, number);
        number
    }

    /// Removes empty lists.
    fn clear_lists(&mut self) {
        let (lists, unused) = (&self.lists, &mut self.unused);
        self.numbers.retain(|_, number| {
            let is_used = lists[*number as usize].first != NONE;
            unused.extend((!is_used).then_some(*number));
            is_used
        });
        self.recent = [NONE; RECENT];
    }

    /// Returns the first entry of a list and its stamp. Entries with lower stamps were pushed
    /// earlier.
    #[inline]
    pub(crate) fn first(&mut self, list: &Selection) -> Option<(EntryId, u64)> {
        if self.is_empty() {
            return None;
        }
        let number = self.find(list)?;
        let slot = self.lists[number as usize].first;
        let found = self.slots.get(slot as usize)?;
        let stamp = found.entry.as_ref()?.stamp;
        Some((EntryId { slot, generation: found.generation }, stamp))
    }

    /// Returns the last entry of a list.
    pub(crate) fn last(&self, list: &Selection) -> Option<(EntryId, &T)> {
        let slot = self.lists[*self.numbers.get(list)? as usize].last;
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

    /// Returns the selection of the list that an entry was pushed to.
    pub(crate) fn selection(&self, id: EntryId) -> Option<Selection> {
        let [link, ..] = self.entry(id)?.links.as_slice() else { return None };
        Some(self.lists[link.list as usize].selection)
    }

    /// Removes an entry from all its lists.
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
            let ends = &mut self.lists[list as usize];
            if before == NONE {
                ends.first = after;
            }
            if after == NONE {
                ends.last = before;
            }
        }
        Some(entry.value)
    }

    /// Returns all entries with their stamps, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (EntryId, u64, &T)> {
        self.slots.iter().enumerate().filter_map(|(slot, found)| {
            let entry = found.entry.as_ref()?;
            let id = EntryId { slot: slot as u32, generation: found.generation };
            Some((id, entry.stamp, &entry.value))
        })
    }

    /// Removes all entries.
    pub(crate) fn drain(&mut self) -> Vec<T> {
        let ids: Vec<_> = self.iter().map(|(id, ..)| id).collect();
        ids.into_iter().filter_map(|id| self.remove(id)).collect()
    }
}

/// Returns the link of an entry in one of its lists.
#[inline]
fn link_of<T, const N: usize>(slots: &mut [Slot<T, N>], slot: u32, list: u32) -> Option<&mut Link> {
    let entry = slots.get_mut(slot as usize)?.entry.as_mut()?;
    entry.links[..usize::from(entry.count)].iter_mut().find(|link| link.list == list)
}
