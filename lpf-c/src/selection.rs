//! Processes that take part in a collective.

use crate::misuse::Misuse;

/// Processes `lo`, `lo + stride`, and so on, below `hi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Selection {
    lo: u32,
    hi: u32,
    stride: u32,
}

impl Selection {
    /// Selects from so many processes.
    pub(crate) fn new(
        lo: u32,
        hi: u32,
        stride: u32,
        processes: usize,
    ) -> std::result::Result<Self, Misuse> {
        if lo > hi || hi as usize > processes || stride == 0 {
            return Err(Misuse::Selection { lo, hi, stride, processes });
        }
        Ok(Selection { lo, hi, stride })
    }

    /// Returns the number of processes.
    pub(crate) fn size(self) -> usize {
        (self.hi - self.lo).div_ceil(self.stride) as usize
    }

    /// Returns the process with an index in the collective.
    pub(crate) fn pid(self, index: usize) -> usize {
        self.lo as usize + index * self.stride as usize
    }

    /// Returns the index of a process in the collective, if it takes part.
    pub(crate) fn index(self, pid: u32) -> Option<usize> {
        let distance = pid.checked_sub(self.lo)?;
        let takes_part = pid < self.hi && distance.is_multiple_of(self.stride);
        takes_part.then_some((distance / self.stride) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_and_processes_belong_together() {
        let selection = Selection::new(1, 8, 3, 8).expect("inside");
        assert_eq!(selection.size(), 3);
        let pids: Vec<_> = (0..3).map(|index| selection.pid(index)).collect();
        assert_eq!(pids, [1, 4, 7]);
        assert_eq!(
            [0, 1, 2, 4, 7, 8, 10].map(|pid| selection.index(pid)),
            [None, Some(0), None, Some(1), Some(2), None, None]
        );
        assert_eq!(Selection::new(3, 3, 1, 8).expect("empty").size(), 0);
    }

    #[test]
    fn a_selection_of_others_is_refused() {
        for (lo, hi, stride) in [(3, 2, 1), (0, 9, 1), (0, 8, 0)] {
            let refused = Misuse::Selection { lo, hi, stride, processes: 8 };
            assert_eq!(Selection::new(lo, hi, stride, 8), Err(refused));
        }
    }
}
