//! Modes of a superstep's end, as shown in a trace.

/// Mode of one sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SyncMode {
    /// Source of the number of expected arrivals.
    pub arrivals: SyncArrivals,
    /// `true` if the sync also waits until every rank has reached it.
    pub barrier: bool,
    /// `true` if the sync also waits until the targets of this round have ended the previous one.
    pub ack: bool,
}

/// Source of the number of arrivals that a sync waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SyncArrivals {
    /// Exchanged between the ranks in this round.
    Default,
    /// Cached from an earlier round.
    Cached,
    /// Given by the program.
    Msg,
}

/// Labels of all modes, by number.
const NAMES: [&str; 12] = [
    "default",
    "default + barrier",
    "default + ack",
    "default + barrier + ack",
    "cached",
    "cached + barrier",
    "cached + ack",
    "cached + barrier + ack",
    "msg",
    "msg + barrier",
    "msg + ack",
    "msg + barrier + ack",
];

impl SyncMode {
    /// Iterates over all modes, by increasing [`number`](Self::number).
    pub fn all() -> impl Iterator<Item = Self> {
        [SyncArrivals::Default, SyncArrivals::Cached, SyncArrivals::Msg].into_iter().flat_map(
            |arrivals| {
                [(false, false), (true, false), (false, true), (true, true)]
                    .map(|(barrier, ack)| Self { arrivals, barrier, ack })
            },
        )
    }

    /// Returns the value in the trace, from 1: 0 means outside any sync.
    pub const fn number(self) -> i64 {
        1 + self.arrivals as i64 * 4 + self.ack as i64 * 2 + self.barrier as i64
    }

    /// Returns the label in the trace.
    pub const fn name(self) -> &'static str {
        NAMES[self.number() as usize - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_numbered_without_holes_from_one() {
        let numbers: Vec<i64> = SyncMode::all().map(SyncMode::number).collect();
        assert_eq!(numbers, (1..=12).collect::<Vec<_>>());
    }

    #[test]
    fn a_name_says_all_of_its_mode() {
        for mode in SyncMode::all() {
            let SyncMode { arrivals, barrier, ack } = mode;
            let mut name = format!("{arrivals:?}").to_lowercase();
            name += if barrier { " + barrier" } else { "" };
            name += if ack { " + ack" } else { "" };
            assert_eq!(mode.name(), name);
        }
    }
}
