//! The errors of the crate, with the values that a caller needs to act on them. over 400 lines: one
//! list of all, each with its text.

mod construction;
mod decomposition;
mod end;
mod name;
mod queue;

use std::path::PathBuf;

use talpf_runtime::{ArrayLabel, Rect};

use crate::numbers::{Elements, LOCAL_SLOT, LaneNumber, Rank, Round};
use crate::window::Kind;

pub use self::decomposition::DecompositionError;
pub use self::end::EndError;
pub use self::name::NameError;
pub use self::queue::QueueError;

/// An error of the one-sided layer.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size or count is beyond its limit.
    #[error("{what} is {value}, expected {} {limit}", bound(*value, *limit))]
    Limit {
        /// Name of the size.
        what: &'static str,
        /// The value that was given.
        value: u64,
        /// The smallest or largest value that is possible.
        limit: u64,
    },
    /// A profile of a virtual machine cannot be used.
    #[error("{profile}: {reason}")]
    Profile {
        /// Name or path of the profile.
        profile: String,
        /// Reason for which the profile is refused.
        #[source]
        reason: ibverbs_sim::LinkModelError,
    },
    /// A setting has a value that cannot be read.
    #[error("{name}={value}: {expected}")]
    Setting {
        /// The name of the setting or environment variable.
        name: &'static str,
        /// The value that was given.
        value: String,
        /// The values that are accepted.
        expected: &'static str,
    },
    /// A file of settings cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    NoSettings {
        /// The file.
        path: PathBuf,
        /// Error text of the operating system.
        reason: String,
    },
    /// A file of settings has a line that is not accepted.
    #[error("{}:{line}: {reason}", path.display())]
    BadSettings {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The mistake, and the values that are accepted.
        reason: String,
    },
    /// No such rank exists.
    #[error("{rank} does not exist, there are {ranks} ranks")]
    NoSuchRank {
        /// The rank asked for.
        rank: Rank,
        /// Number of ranks of the run.
        ranks: u32,
    },
    /// A window is on an array that no global slot has, or a remote region is of a local slot.
    #[error("{array} is not registered{why}")]
    NotRegistered {
        /// The array.
        array: ArrayLabel,
        /// The rest of the message: the missing property, and the call that gives it.
        why: &'static str,
    },
    /// The slot was deregistered, or is not one of this rank.
    #[error("{} does not exist at this rank: it was deregistered, or belongs to another rank", name_of(*slot))]
    NoSuchSlot {
        /// The slot's number.
        slot: u32,
    },
    /// A slot of one run was used in another.
    #[error("{} belongs to another run of this process", name_of(*slot))]
    SlotOfOtherRun {
        /// The slot's number in its own run.
        slot: u32,
    },
    /// A handle was used after the end of its run.
    #[error("the run that this handle belongs to has ended")]
    RunEnded,
    /// The ranks register arrays of different element sizes as one slot.
    #[error("slot {slot}: element size is {here} bytes here and {there} bytes at {rank}")]
    SlotMismatch {
        /// The slot's number.
        slot: u32,
        /// Bytes of an element here.
        here: u64,
        /// Bytes of an element at `rank`.
        there: u64,
        /// The rank that differs.
        rank: Rank,
    },
    /// An operation reaches beyond the target's slot.
    #[error(
        "elements {index}..{end} of slot {slot} at {rank} do not exist: the slot has {len} there"
    )]
    OutOfSlot {
        /// The slot's number.
        slot: u32,
        /// The target.
        rank: Rank,
        /// First element.
        index: u64,
        /// The element after the last one.
        end: u64,
        /// Number of elements of the slot at the target.
        len: u64,
    },
    /// An operation is on a rectangle that the target's matrix does not have.
    #[error(
        "rows {}..{}, columns {}..{} of slot {slot} at {rank} do not exist: the matrix is {rows} x {cols} there",
        rect.row, rect.row_end, rect.col, rect.col_end
    )]
    OutOfMatrix {
        /// The slot's number.
        slot: u32,
        /// The target.
        rank: Rank,
        /// The rectangle.
        rect: Rect,
        /// Number of rows of the slot at the target.
        rows: u64,
        /// Number of columns of the slot at the target.
        cols: u64,
    },
    /// An operation has more or fewer local elements than the remote rectangle.
    #[error(
        "rows {}..{}, columns {}..{} of slot {slot} at {rank} are {} elements, but the local region has {len}",
        rect.row, rect.row_end, rect.col, rect.col_end, rect.rows() * rect.cols()
    )]
    OtherLength {
        /// The slot's number.
        slot: u32,
        /// The target.
        rank: Rank,
        /// The rectangle.
        rect: Rect,
        /// Number of elements of the local region.
        len: u64,
    },
    /// No window of the round covers the remote region of an operation (R7).
    #[error(
        "{source_rank} reaches {elements} of slot {slot} at {target} in {lane} \
         {round}, outside every window: an operation that {does} needs {} in the sync of that round \
         at {target}",
        if *does == Kind::Read.verb() { "an `expose`" } else { "a `window`" }
    )]
    OutsideWindow {
        /// The rank that issued the operation.
        source_rank: Rank,
        /// The operation as a verb: `gets`, `updates` or `puts`.
        does: &'static str,
        /// The rank whose memory the operation is for.
        target: Rank,
        /// The lane.
        lane: LaneNumber,
        /// The round.
        round: Round,
        /// The slot's number.
        slot: u32,
        /// The elements of the slot.
        elements: Elements,
    },
    /// Two operations of a round read and write one location (R6). Found when the round ends, if
    /// [`Config::check_conflicts`](crate::Config::check_conflicts) is set.
    #[error(
        "{lane} {round}: {reader} {reads} and {writer} {writes} elements {index}..{end} of slot \
         {slot} at {target}: a round must not read and write one location"
    )]
    Conflict {
        /// The lane.
        lane: LaneNumber,
        /// The round.
        round: Round,
        /// The rank that issued the operation that reads.
        reader: Rank,
        /// The reading operation as a verb: `gets` or `updates`.
        reads: &'static str,
        /// The rank that issued the operation that writes.
        writer: Rank,
        /// The writing operation as a verb: `updates` or `puts`.
        writes: &'static str,
        /// The rank whose memory both reach.
        target: Rank,
        /// The slot's number.
        slot: u32,
        /// The first element that both touch.
        index: u64,
        /// The element after the last one that both touch.
        end: u64,
    },
    /// More operations arrived in a round than its sync expects.
    #[error(
        "{lane} {round}: {arrived} operations arrived from {source_rank}, {expected} expected: the \
         sync of this round at {source_rank} comes later than here, or `msg` has too low a number"
    )]
    UnexpectedArrivals {
        /// The lane.
        lane: LaneNumber,
        /// The round.
        round: Round,
        /// The rank that issued the operations.
        source_rank: Rank,
        /// Number of operations that arrived.
        arrived: u32,
        /// Number of operations that the sync expects (from all ranks under `Msg`).
        expected: u32,
    },
    /// A round under `Cached` differs from the cached pattern.
    #[error(
        "{lane} {round}: {sent} operations to {target}, the cached pattern has {expected}: rounds \
         that differ need `SyncMode::DEFAULT`, or a lane of their own"
    )]
    PatternChanged {
        /// The lane.
        lane: LaneNumber,
        /// The round.
        round: Round,
        /// The target.
        target: Rank,
        /// Number of operations of this round.
        sent: u32,
        /// Number of operations of the cached pattern.
        expected: u32,
    },
    /// An operation of this rank was never posted, because a task that it depends on failed.
    #[error("{lane} {round}: an operation was not posted because a task before it failed")]
    NotPosted {
        /// The lane.
        lane: LaneNumber,
        /// The round.
        round: Round,
    },
    /// The main returned, and no sync has closed a round that has operations.
    #[error(
        "{lane} {round}: {operations} operations, and no sync has closed the round: spawn or await one"
    )]
    NotClosed {
        /// The lane.
        lane: LaneNumber,
        /// The round.
        round: Round,
        /// Number of operations of the round.
        operations: u64,
    },
    /// A step of an iteration has operations on a lane that no sync of the step follows.
    #[error(
        "a step of an iteration has operations on {lane}, and no sync of {lane} follows them in the step"
    )]
    StepNotClosed {
        /// The lane.
        lane: LaneNumber,
    },
    /// A window of this rank was never opened, because a task that it depends on failed.
    #[error("{lane} {round}: a window was not opened because a task before it failed")]
    NotOpened {
        /// The lane.
        lane: LaneNumber,
        /// The round.
        round: Round,
    },
    /// Windows of one sync overlap: each would wait for the other.
    #[error("{lane} {round}: a window on {array} overlaps another one of the same sync")]
    WindowsOverlap {
        /// The lane.
        lane: LaneNumber,
        /// The round.
        round: Round,
        /// The array that both windows are on.
        array: ArrayLabel,
    },
    /// A lane cannot be used in this way.
    #[error("{lane} {why}")]
    LaneRefused {
        /// The lane.
        lane: LaneNumber,
        /// The reason.
        why: &'static str,
    },
    /// A rank is too many rounds ahead of a rank that it sends to.
    #[error(
        "{rank} is in {ahead} of {lane} and {peer} in {behind}: ranks may be at most {limit} rounds apart"
    )]
    TooFarAhead {
        /// The lane.
        lane: LaneNumber,
        /// The rank that is ahead.
        rank: Rank,
        /// The round of the rank that is ahead.
        ahead: Round,
        /// The rank that is behind.
        peer: Rank,
        /// The oldest round that has not ended at `peer`.
        behind: Round,
        /// The largest number of rounds that may be between the two.
        limit: u64,
    },
    /// A rank has no notification with this id.
    #[error(
        "{rank} has no notification {id}, only those below {ids}: `resize_notifications` gives it more"
    )]
    NoSuchNotification {
        /// The rank that was to be notified, or that waits.
        rank: Rank,
        /// The id.
        id: u32,
        /// Number of ids of the rank.
        ids: u32,
    },
    /// The wait for a notification that comes with a put has no inbox that covers the put (R7).
    #[error(
        "{source_rank} puts {elements} of slot {slot} at {target} with notification {id}, which {target} \
         waits for without an inbox that covers them"
    )]
    OutsideInbox {
        /// The rank that puts.
        source_rank: Rank,
        /// The rank that waits.
        target: Rank,
        /// The id.
        id: u32,
        /// The slot's number.
        slot: u32,
        /// The elements of the slot.
        elements: Elements,
    },
    /// A notification will never come.
    #[error("{rank} waits for notification {id}, which does not come: {reason}")]
    NotNotified {
        /// The rank that waits.
        rank: Rank,
        /// The id; the first one, of several.
        id: u32,
        /// The failure of the run.
        reason: String,
    },
    /// The wait of a task for a put was given up, because a task before it failed.
    #[error(
        "{rank} does not receive notification {id}: the task that was to wait for it does not run"
    )]
    InboxGivenUp {
        /// The rank.
        rank: Rank,
        /// The id.
        id: u32,
    },
    /// A notified put was never issued, because a task that it depends on failed.
    #[error("{target} was not notified of {id} because a task before the put failed")]
    NotIssued {
        /// The rank that was to be notified.
        target: Rank,
        /// The id.
        id: u32,
    },
    /// All programs have ended, and a put is parked that came with a notification.
    #[error(
        "{source_rank} has put to {target} with notification {id}, which {target} has not received"
    )]
    NotReceived {
        /// The rank that puts.
        source_rank: Rank,
        /// The rank that was to receive.
        target: Rank,
        /// The id.
        id: u32,
    },
    /// An error of a remote queue.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// An error of a name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// An error of an end of a sampled value or of a phaser.
    #[error(transparent)]
    End(#[from] EndError),
    /// The two ends of a double-buffered channel do not match.
    #[error("double-buffered channel: {what} is {here} here and {there} at {rank}")]
    LinksDiffer {
        /// Name of the value that differs.
        what: &'static str,
        /// The rank at the other end.
        rank: Rank,
        /// The value at this rank.
        here: u64,
        /// The value at `rank`.
        there: u64,
    },
    /// The ranks gave different arguments to a collective call, which has had no effect.
    #[error("{call}: {what} is {here} here and {there} at {rank}")]
    ArgumentsDiffer {
        /// The call.
        call: &'static str,
        /// Name of the argument.
        what: &'static str,
        /// The rank that differs.
        rank: Rank,
        /// The argument of this rank.
        here: u64,
        /// The argument of `rank`.
        there: u64,
    },
    /// A region has not as many elements as its collective needs.
    #[error("{call}: `{what}` has {elements} elements, {expected} are expected")]
    RegionLength {
        /// The collective.
        call: &'static str,
        /// Name of the region.
        what: &'static str,
        /// Number of elements of the region.
        elements: usize,
        /// Number of elements expected.
        expected: usize,
    },
    /// The ranks made different collective calls, none of which has had an effect.
    #[error("this rank calls {here} where {rank} calls {there}")]
    CallsDiffer {
        /// The call of this rank.
        here: &'static str,
        /// The rank that differs.
        rank: Rank,
        /// The call of `rank`.
        there: &'static str,
    },
    /// A collective call failed at another rank, and has had no effect at any rank.
    #[error("{call} failed at {rank}: {reason}")]
    CallFailed {
        /// The call.
        call: &'static str,
        /// The rank at which the call failed.
        rank: Rank,
        /// The error of that rank.
        reason: String,
    },
    /// A double-buffered channel has no such link.
    #[error("link {link} does not exist, the channel has {links}")]
    NoSuchLink {
        /// The link asked for.
        link: usize,
        /// Number of links of the channel.
        links: usize,
    },
    /// A region cannot be the buffer of a link.
    #[error("link {link}: a region of {array} {why}")]
    WrongBuffer {
        /// The link.
        link: usize,
        /// The region's array.
        array: ArrayLabel,
        /// The reason.
        why: &'static str,
    },
    /// A round of a double-buffered channel has no put on a link, or more than one.
    #[error("{lane} {round}: {puts} puts on link {link}, expected one in every round")]
    NotOnePut {
        /// The lane.
        lane: LaneNumber,
        /// The round.
        round: Round,
        /// The link.
        link: usize,
        /// Number of puts on the link.
        puts: u32,
    },
    /// A decomposition cannot be made, or does not fit.
    #[error(transparent)]
    Decomposition(#[from] DecompositionError),
    /// Another rank failed, so this one cannot go on.
    #[error("{rank} failed: {reason}")]
    PeerFailed {
        /// The rank.
        rank: Rank,
        /// The error of that rank.
        reason: String,
    },
    /// The device reports a failed work request.
    #[error("work request to {peer} ended with {status}")]
    WorkRequest {
        /// The target of the work request.
        peer: Rank,
        /// The completion status.
        status: String,
    },
    /// The processes of two runs have met.
    #[error("{rank} is of another run: its {what} is {there}, here it is {here}")]
    OtherRun {
        /// The rank.
        rank: Rank,
        /// Name of the value that differs.
        what: &'static str,
        /// The value in this process.
        here: u64,
        /// The value in the process of `rank`.
        there: u64,
    },
    /// Another process has sent a control message that is malformed or not allowed.
    #[error("{rank} has sent {what}")]
    BadControlMessage {
        /// The rank of the process.
        rank: Rank,
        /// The message, with its values and their limits.
        what: String,
    },
    /// An error of the device.
    #[error("device: {0}")]
    Device(#[from] ibverbs_sim::Error),
    /// A call needs all ranks in one process.
    #[error("{call} needs all ranks in one process")]
    OneProcess {
        /// The call.
        call: &'static str,
    },
    /// A call needs a link that takes no time.
    #[error("{call} needs a run without a link model")]
    HasLinkModel {
        /// The call.
        call: &'static str,
    },
    /// The thread that serves other processes needs a rail with an event, such as shared memory or TCP.
    #[error("a thread that serves other processes needs an event of the transport, which has none")]
    NoEvent,
    /// The thread that serves other processes cannot be started.
    #[error("the thread that serves other processes cannot be started: {0}")]
    ProgressThread(String),
    /// An error of the task runtime.
    #[error(transparent)]
    Runtime(#[from] talpf_runtime::Error),
}

/// Returns the word before the limit that a value is beyond.
fn bound(value: u64, limit: u64) -> &'static str {
    if value < limit { "at least" } else { "at most" }
}

/// Returns the name of a slot; those of `register_local` have no number.
fn name_of(slot: u32) -> String {
    if slot == LOCAL_SLOT { "a local slot".to_owned() } else { format!("slot {slot}") }
}
