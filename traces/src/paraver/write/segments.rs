//! Lists that grow without being copied.

use std::collections::VecDeque;

/// Number of elements of a segment.
const SEGMENT: usize = 1 << 10;

/// Queue of numbers in segments that are freed as they are taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Segments {
    segments: VecDeque<Vec<u64>>,
    /// Number of elements of the first segment that were taken.
    taken: usize,
}

impl Segments {
    /// Appends a number.
    pub(super) fn push(&mut self, number: u64) {
        match self.segments.back_mut() {
            Some(last) if last.len() < last.capacity() => last.push(number),
            _ => {
                // Small as long as it is the only one, as there is a queue for each row.
                let capacity = if self.segments.is_empty() { 4 } else { SEGMENT };
                let mut segment = Vec::with_capacity(capacity);
                segment.push(number);
                self.segments.push_back(segment);
            }
        }
    }

    /// Takes the first number.
    pub(super) fn pop(&mut self) -> Option<u64> {
        let first = self.segments.front()?;
        let number = *first.get(self.taken)?;
        self.taken += 1;
        if self.taken == first.len() {
            (_, self.taken) = (self.segments.pop_front(), 0);
        }
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_order() {
        for count in [0, 1, 4, 5, 3 * SEGMENT as u64 + 2] {
            let mut segments = Segments::default();
            (0..count).for_each(|number| segments.push(number));
            assert!((0..count).all(|number| segments.pop() == Some(number)));
            assert_eq!(segments.pop(), None);
        }
    }
}
