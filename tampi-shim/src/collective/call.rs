//! Which collective a rank has called.

use std::fmt;

use crate::rank::Rank;

/// The operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
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

const KINDS: [Kind; 11] = [
    Kind::Barrier,
    Kind::Broadcast,
    Kind::Gather,
    Kind::Scatter,
    Kind::Allgather,
    Kind::Alltoall,
    Kind::Reduce,
    Kind::Allreduce,
    Kind::ReduceScatter,
    Kind::Scan,
    Kind::Exscan,
];

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Barrier => "barrier",
            Kind::Broadcast => "broadcast",
            Kind::Gather => "gather",
            Kind::Scatter => "scatter",
            Kind::Allgather => "allgather",
            Kind::Alltoall => "alltoall",
            Kind::Reduce => "reduce",
            Kind::Allreduce => "allreduce",
            Kind::ReduceScatter => "reduce_scatter",
            Kind::Scan => "scan",
            Kind::Exscan => "exscan",
        }
    }
}

/// What of a call all ranks must agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) kind: Kind,
    pub(crate) root: Option<Rank>,
    /// Elements, where the operation wants the same number of all ranks.
    pub(crate) elements: Option<usize>,
}

/// A call and the size of its elements as ranks tell each other.
pub(crate) type Told = [u64; 4];

/// Stands for what a call does not have.
const NONE: u64 = u64::MAX;

impl Call {
    pub(crate) fn told(self, element: usize) -> Told {
        [
            self.kind as u64,
            self.root.map_or(NONE, |root| u64::from(root.0)),
            self.elements.map_or(NONE, |elements| elements as u64),
            element as u64,
        ]
    }
}

/// What a peer has told, for people.
pub(crate) struct Readable<'a>(pub(crate) &'a [u64]);

impl fmt::Display for Readable<'_> {
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
        let call = Call { kind: Kind::Broadcast, root: Some(Rank(3)), elements: Some(7) };
        let text = Readable(&call.told(8)).to_string();
        assert_eq!(text, "broadcast of 7 elements of 8 bytes with root 3");
        let call = Call { kind: Kind::Barrier, root: None, elements: None };
        assert_eq!(Readable(&call.told(1)).to_string(), "barrier");
    }
}
