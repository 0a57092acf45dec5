//! Slots: values by number, with generations.

/// Values by number. The number of a removed value names nothing.
pub(super) struct Slots<T> {
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn insert(&mut self, value: T) -> u64 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            (self.slots.len() - 1) as u32
        });
        let (generation, place) = &mut self.slots[slot as usize];
        *place = Some(value);
        u64::from(*generation) << 32 | u64::from(slot)
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<T> {
        let slot = number as u32;
        let (generation, place) = self.slots.get_mut(slot as usize)?;
        if *generation != (number >> 32) as u32 {
            return None;
        }
        let value = place.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(slot);
        Some(value)
    }

    pub(super) fn drain(&mut self) -> Vec<T> {
        let values: Vec<T> = self
            .slots
            .iter_mut()
            .filter_map(|(generation, place)| {
                let value = place.take()?;
                *generation = generation.wrapping_add(1);
                Some(value)
            })
            .collect();
        self.free = (0..self.slots.len() as u32).collect();
        values
    }
}
