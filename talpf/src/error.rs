//! What can go wrong, with the values needed to act.

use std::path::PathBuf;

use talpf_runtime::ArrayLabel;

use crate::numbers::{Lane, Rank, Round};
use crate::window::{Claim, Kind};

/// An error of the one-sided layer.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size or count is beyond what is possible.
    #[error("{what} is {value}, the limit is {limit}")]
    Limit {
        /// Which size.
        what: &'static str,
        /// What was given.
        value: u64,
        /// The smallest or largest that is possible.
        limit: u64,
    },
    /// A setting has a value that cannot be read.
    #[error("{name}={value}: {expected}")]
    Setting {
        /// The name of the setting or environment variable.
        name: &'static str,
        /// What was given.
        value: String,
        /// What would be right.
        expected: &'static str,
    },
    /// A file of settings cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    NoSettings {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// A file of settings says something that is not allowed.
    #[error("{}:{line}: {reason}", path.display())]
    BadSettings {
        /// The file.
        path: PathBuf,
        /// Line of what is wrong, counted from one.
        line: usize,
        /// What is wrong with it, and what would be right.
        reason: String,
    },
    /// There is no such rank.
    #[error("{rank} does not exist, there are {ranks} ranks")]
    NoSuchRank {
        /// The rank asked for.
        rank: Rank,
        /// How many there are.
        ranks: u32,
    },
    /// A window is of an array whose memory peers do not know, or a remote region of a slot that is
    /// local.
    #[error("{array} is not registered{why}")]
    NotRegistered {
        /// The array.
        array: ArrayLabel,
        /// The property that is missing, and what to call.
        why: &'static str,
    },
    /// The slot was deregistered, or is not one of this rank.
    #[error("slot {slot} does not exist")]
    NoSuchSlot {
        /// The slot's number.
        slot: u32,
    },
    /// A slot was kept from one run and used in another.
    #[error("slot {slot} belongs to another run of this process")]
    SlotOfOtherRun {
        /// The slot's number in its own run.
        slot: u32,
    },
    /// A handle was kept beyond the end of its run.
    #[error("the run has ended")]
    RunEnded,
    /// The ranks register different things as the same slot.
    #[error("slot {slot}: element size is {here} bytes here and {there} bytes at {rank}")]
    SlotMismatch {
        /// The slot's number.
        slot: u32,
        /// Bytes of an element here.
        here: u64,
        /// Bytes of an element there.
        there: u64,
        /// The rank that differs.
        rank: Rank,
    },
    /// An operation reaches beyond the target's slot.
    #[error("elements {index}..{end} of slot {slot} at {rank}, which has {len}")]
    OutOfSlot {
        /// The slot's number.
        slot: u32,
        /// The target.
        rank: Rank,
        /// First element.
        index: u64,
        /// One past the last element.
        end: u64,
        /// Elements of the slot there.
        len: u64,
    },
    /// R7: no window of the round covers what an operation wants to reach.
    #[error(
        "{source_rank} reaches elements {index}..{end} of slot {slot} at {target} in {lane} \
         {round}, outside every window: what it {does} needs {} of the sync of that round at {target}",
        if *does == Kind::Read.verb() { "an `expose`" } else { "a `window`" }
    )]
    OutsideWindow {
        /// The rank that issued the operation.
        source_rank: Rank,
        /// The operation as a verb: `gets`, `updates` or `puts`.
        does: &'static str,
        /// The rank whose memory it wants to reach.
        target: Rank,
        /// The lane.
        lane: Lane,
        /// The round.
        round: Round,
        /// The slot's number.
        slot: u32,
        /// First element.
        index: u64,
        /// One past the last element.
        end: u64,
    },
    /// R6: one location is read and written in one round. Found when the round ends, if
    /// [`Config::check_conflicts`](crate::Config::check_conflicts) is set.
    #[error(
        "{lane} {round}: {reader} {reads} and {writer} {writes} elements {index}..{end} of slot \
         {slot} at {target}"
    )]
    Conflict {
        /// The lane.
        lane: Lane,
        /// The round.
        round: Round,
        /// The rank that issued the operation that reads.
        reader: Rank,
        /// What that does: it `gets` or `updates`.
        reads: &'static str,
        /// The rank that issued the operation that writes.
        writer: Rank,
        /// What that does: it `updates` or `puts`.
        writes: &'static str,
        /// The rank whose memory they reach.
        target: Rank,
        /// The slot's number.
        slot: u32,
        /// The first element that both touch.
        index: u64,
        /// One past the last of those that follow it.
        end: u64,
    },
    /// More operations arrived in a round than its sync expects.
    #[error(
        "{lane} {round}: {arrived} operations arrived from {source_rank}, {expected} expected: the \
         sync of this round at {source_rank} comes later than here, or `msg` has too low a number"
    )]
    UnexpectedArrivals {
        /// The lane.
        lane: Lane,
        /// The round.
        round: Round,
        /// Where they came from.
        source_rank: Rank,
        /// How many came.
        arrived: u32,
        /// How many the sync expects (from all ranks under `Msg`).
        expected: u32,
    },
    /// A round under `Cached` differs from the one that was remembered.
    #[error(
        "{lane} {round}: {sent} operations to {target}, the cached pattern has {expected}: rounds \
         that differ need `SyncMode::DEFAULT`, or a lane of their own"
    )]
    PatternChanged {
        /// The lane.
        lane: Lane,
        /// The round.
        round: Round,
        /// The target.
        target: Rank,
        /// Operations of this round.
        sent: u32,
        /// Operations of the remembered one.
        expected: u32,
    },
    /// An operation of this rank was never posted, because a task before it failed.
    #[error("{lane} {round}: an operation was not posted because a task before it failed")]
    NotPosted {
        /// The lane.
        lane: Lane,
        /// The round.
        round: Round,
    },
    /// Operations of a round that no sync has closed when the main returned.
    #[error(
        "{lane} {round}: {operations} operations, and no sync has closed the round: spawn or await one"
    )]
    NotClosed {
        /// The lane.
        lane: Lane,
        /// The round.
        round: Round,
        /// How many.
        operations: u64,
    },
    /// A window of this rank was never opened, because a task before it failed.
    #[error("{lane} {round}: a window was not opened because a task before it failed")]
    NotOpened {
        /// The lane.
        lane: Lane,
        /// The round.
        round: Round,
    },
    /// Windows of one sync overlap: each would wait for the other.
    #[error("{lane} {round}: a window on {array} overlaps another one of the same sync")]
    WindowsOverlap {
        /// The lane.
        lane: Lane,
        /// The round.
        round: Round,
        /// The array of both.
        array: ArrayLabel,
    },
    /// A lane cannot be used in this way.
    #[error("{lane} {why}")]
    LaneRefused {
        /// The lane.
        lane: Lane,
        /// What keeps it from being used.
        why: &'static str,
    },
    /// A rank is so far ahead of another one that has to take note of it that it cannot.
    #[error(
        "{rank} is in {ahead} of {lane} and {peer} in {behind}: at most {limit} may be between"
    )]
    TooFarAhead {
        /// The lane.
        lane: Lane,
        /// The rank that is ahead.
        rank: Rank,
        /// Its round.
        ahead: Round,
        /// The rank that it has sent something to.
        peer: Rank,
        /// The oldest round that has not ended there.
        behind: Round,
        /// The most rounds that may be between the two.
        limit: u64,
    },
    /// The two ends of an exchange do not match.
    #[error("{what}: {here} here and {there} at {rank}")]
    LinksDiffer {
        /// What is not the same.
        what: &'static str,
        /// The other end.
        rank: Rank,
        /// The value here.
        here: u64,
        /// The value there.
        there: u64,
    },
    /// The ranks met in different collective calls. None of them has done anything.
    #[error("this rank calls {here} where {rank} calls {there}")]
    CallsDiffer {
        /// The call of this rank.
        here: &'static str,
        /// The rank that differs.
        rank: Rank,
        /// Its call.
        there: &'static str,
    },
    /// A collective call failed at another rank. It has done nothing at any rank.
    #[error("{call} failed at {rank}: {reason}")]
    CallFailed {
        /// The call.
        call: &'static str,
        /// The rank at which it failed.
        rank: Rank,
        /// The error of that rank.
        reason: String,
    },
    /// An exchange has no such link.
    #[error("link {link} does not exist, the exchange has {links}")]
    NoSuchLink {
        /// The link asked for.
        link: usize,
        /// How many there are.
        links: usize,
    },
    /// A region cannot be the place of a link.
    #[error("link {link}: a region of {array} {why}")]
    WrongPlace {
        /// The link.
        link: usize,
        /// The region's array.
        array: ArrayLabel,
        /// Why not.
        why: &'static str,
    },
    /// A round of an exchange has not one put on a link.
    #[error("{lane} {round}: {puts} puts on link {link}, one expected")]
    NotOnePut {
        /// The lane.
        lane: Lane,
        /// The round.
        round: Round,
        /// The link.
        link: usize,
        /// Puts on it.
        puts: u32,
    },
    /// Another rank failed, so this one cannot go on.
    #[error("{rank} failed: {reason}")]
    PeerFailed {
        /// The rank.
        rank: Rank,
        /// What it said.
        reason: String,
    },
    /// The device reports a failed work request.
    #[error("work request to {peer} ended with {status}")]
    WorkRequest {
        /// The other side.
        peer: Rank,
        /// The completion status.
        status: String,
    },
    /// Processes that do not belong to one run.
    #[error("{rank} is of another run: its {what} is {there}, here it is {here}")]
    OtherRun {
        /// The rank.
        rank: Rank,
        /// What differs.
        what: &'static str,
        /// The value here.
        here: u64,
        /// The value there.
        there: u64,
    },
    /// Another process has sent a control message that it may not send, or that cannot be read.
    #[error("{rank} has sent {what}")]
    WrongLetter {
        /// The rank of the process.
        rank: Rank,
        /// The message, with its values and their limits.
        what: String,
    },
    /// An error of the device.
    #[error("device: {0}")]
    Device(#[from] ibverbs_sim::Error),
    /// An error of the task runtime.
    #[error(transparent)]
    Runtime(#[from] talpf_runtime::Error),
}

impl Error {
    pub(crate) fn outside_window(claim: &Claim, target: Rank, lane: Lane, round: Round) -> Self {
        let Claim { source: source_rank, slot, index, end, kind, .. } = *claim;
        let does = kind.verb();
        Error::OutsideWindow { source_rank, does, target, lane, round, slot, index, end }
    }

    /// Checks that a rank which is `ahead` of the other is not too far ahead.
    pub(crate) fn check_ahead(
        lane: Lane,
        (rank, ahead): (Rank, Round),
        (peer, behind): (Rank, Round),
        limit: u64,
    ) -> Result<(), Self> {
        if ahead.0 < behind.0.saturating_add(limit) {
            return Ok(());
        }
        Err(Error::TooFarAhead { lane, rank, ahead, peer, behind, limit })
    }

    /// Who is told this that `rank` has found, itself first.
    pub(crate) fn ranks(&self, rank: Rank) -> Vec<Rank> {
        match *self {
            Error::Conflict { reader, writer, .. } => vec![rank, reader, writer],
            Error::TooFarAhead { rank: ahead, .. } => vec![rank, ahead],
            _ => vec![rank],
        }
    }

    /// `claims` are in conflict, in the order of their kinds.
    pub(crate) fn conflict(claims: [Claim; 2], target: Rank, lane: Lane, round: Round) -> Self {
        let [(reader, reads), (writer, writes)] =
            claims.each_ref().map(|claim| (claim.source, claim.kind.verb()));
        let [one, other] = claims;
        let (index, end) = (one.index.max(other.index), one.end.min(other.end));
        let slot = one.slot;
        Error::Conflict { lane, round, reader, reads, writer, writes, target, slot, index, end }
    }
}
