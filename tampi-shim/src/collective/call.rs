//! Calls of collectives, as ranks exchange them to compare them.

use std::fmt;

use crate::rank::Rank;

/// Collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CollectiveKind {
    Barrier,
    Broadcast,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    Reduce,
    Allreduce,
    ReduceScatter,
    Scan,
    Exscan,
}

const KINDS: [CollectiveKind; 11] = [
    CollectiveKind::Barrier,
    CollectiveKind::Broadcast,
    CollectiveKind::Gather,
    CollectiveKind::Scatter,
    CollectiveKind::Allgather,
    CollectiveKind::Alltoall,
    CollectiveKind::Reduce,
    CollectiveKind::Allreduce,
    CollectiveKind::ReduceScatter,
    CollectiveKind::Scan,
    CollectiveKind::Exscan,
];

impl CollectiveKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            CollectiveKind::Barrier => "barrier",
            CollectiveKind::Broadcast => "broadcast",
            CollectiveKind::Gather => "gather",
            CollectiveKind::Scatter => "scatter",
            CollectiveKind::Allgather => "allgather",
            CollectiveKind::Alltoall => "alltoall",
            CollectiveKind::Reduce => "reduce",
            CollectiveKind::Allreduce => "allreduce",
            CollectiveKind::ReduceScatter => "reduce_scatter",
            CollectiveKind::Scan => "scan",
            CollectiveKind::Exscan => "exscan",
        }
    }
}

/// Arguments of a collective on which all ranks must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) kind: CollectiveKind,
    pub(crate) root: Option<Rank>,
    /// Number of elements, if the operation needs the same number at all ranks.
    pub(crate) elements: Option<usize>,
}

/// A call and the size of its elements, as ranks exchange them.
pub(crate) type CallWords = [u64; 4];

/// Stands for an absent argument.
const NONE: u64 = u64::MAX;

impl Call {
    pub(crate) fn to_words(self, element: usize) -> CallWords {
        [
            self.kind as u64,
            self.root.map_or(NONE, |root| u64::from(root.0)),
            self.elements.map_or(NONE, |elements| elements as u64),
            element as u64,
        ]
    }
}

/// Formats the words of a call for error messages.
pub(crate) struct DisplayCall<'a>(pub(crate) &'a [u64]);

impl fmt::Display for DisplayCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &[kind, root, elements, bytes] = self.0 else { return f.write_str("nothing") };
        match KINDS.get(kind as usize) {
            Some(kind) => f.write_str(kind.name())?,
            None => write!(f, "operation {kind}")?,
        }
        if elements != NONE {
            write!(f, " of {elements} elements of {bytes} bytes")?;
        }
        if root != NONE {
            write!(f, " with root {root}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_number() {
        for kind in KINDS {
            assert_eq!(KINDS[kind as usize], kind);
        }
    }

    #[test]
    fn calls_read_well() {
        let call = Call { kind: CollectiveKind::Broadcast, root: Some(Rank(3)), elements: Some(7) };
        let text = DisplayCall(&call.to_words(8)).to_string();
        assert_eq!(text, "broadcast of 7 elements of 8 bytes with root 3");
        let call = Call { kind: CollectiveKind::Barrier, root: None, elements: None };
        assert_eq!(DisplayCall(&call.to_words(1)).to_string(), "barrier");
    }
}
