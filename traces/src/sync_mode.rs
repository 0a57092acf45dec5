//! How a superstep ends, as shown in a trace: where the number of expected
//! arrivals comes from, and what else the end waits for.

/// The mode of one synchronisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SyncMode {
    /// Where the number of expected arrivals comes from.
    pub arrivals: SyncArrivals,
    /// What the end waits for besides the arrivals.
    pub modifier: SyncModifier,
}

/// Where a synchronisation gets the number of arrivals it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SyncArrivals {
    /// Exchanged in this round.
    Default,
    /// Remembered from an earlier round.
    Cached,
    /// Given by the program.
    Msg,
}

/// What the end of a synchronisation waits for besides the arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SyncModifier {
    /// Nothing.
    None,
    /// Every rank has passed.
    Barrier,
    /// The targets of this round have ended the one before.
    Ack,
}

impl SyncMode {
    /// Every mode, by increasing [`number`](Self::number).
    pub fn all() -> impl Iterator<Item = Self> {
        [SyncArrivals::Default, SyncArrivals::Cached, SyncArrivals::Msg].into_iter().flat_map(
            |arrivals| {
                [SyncModifier::None, SyncModifier::Barrier, SyncModifier::Ack]
                    .map(|modifier| Self { arrivals, modifier })
            },
        )
    }

    /// The value in the trace, from 1: 0 means outside any synchronisation.
    pub const fn number(self) -> i64 {
        1 + self.arrivals as i64 * 3 + self.modifier as i64
    }

    /// The label in the trace.
    pub const fn name(self) -> &'static str {
        match (self.arrivals, self.modifier) {
            (SyncArrivals::Default, SyncModifier::None) => "default",
            (SyncArrivals::Default, SyncModifier::Barrier) => "default + barrier",
            (SyncArrivals::Default, SyncModifier::Ack) => "default + ack",
            (SyncArrivals::Cached, SyncModifier::None) => "cached",
            (SyncArrivals::Cached, SyncModifier::Barrier) => "cached + barrier",
            (SyncArrivals::Cached, SyncModifier::Ack) => "cached + ack",
            (SyncArrivals::Msg, SyncModifier::None) => "msg",
            (SyncArrivals::Msg, SyncModifier::Barrier) => "msg + barrier",
            (SyncArrivals::Msg, SyncModifier::Ack) => "msg + ack",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_numbered_without_holes_from_one() {
        let numbers: Vec<i64> = SyncMode::all().map(SyncMode::number).collect();
        assert_eq!(numbers, (1..=9).collect::<Vec<_>>());
    }
}
