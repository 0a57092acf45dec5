//! Notifications: operations outside rounds, which announce themselves by an id and a value.
//!
//! A rank notifies another one of an id, with or without a put that comes first; the other one waits
//! for the id, in a task or before a task starts. The k-th wait for an id gets the k-th notification
//! of that id that comes. There is no round: who sends and who waits count for themselves.
//!
//! A notified put lands under the same rule as one of a round (R5, R7): in a region that the target
//! holds a guard of, which is called its *inbox*, and at no other time. A wait that has an inbox takes
//! one put; a put that comes before is parked, up to a number of operations a source, and lands when
//! the next wait for its id brings the inbox. So a sender is held up until what it has sent before was
//! consumed, and `K` inboxes are a flow control of `K` items.
//!
//! ```text
//! put, notify ──► parked ──► under way ──► arrived, if nothing waits ──► wait
//!       └──────────────────────▲    └──────────────────────────────────────▲
//! ```
//!
//! The table of the target ([`NotificationTable`]) decides about each operation, and keeps id and
//! value. What it lets land gets an
//! [`ArrivalNumber`](crate::numbers::ArrivalNumber), which is all that travels with the bytes: as
//! the immediate of their write. The engine of the target that takes in the completion passes that
//! number to the table, which then ends the wait. From the time at which an operation is let land until
//! then its inbox is reserved, so the guard is kept, whatever becomes of the task that waits.
//!
//! Between processes the put travels with its claim, if it is short, or asks for the number by a
//! control message, as puts into windows do.
//!
//! **Threads.** Any thread calls the table, which has one lock. Waits end, and parked operations are
//! posted, under no lock ([`Follows`]).

mod awaited;
mod claim;
mod follows;
mod handle;
mod id;
mod ids;
mod inbox;
mod last;
mod listener;
mod multicast;
mod of_rank;
mod private;
mod report;
mod spawned_put;
mod state;
mod table;
mod task;
mod under_way;
mod wait;
mod wait_count;

pub use self::claim::Notification;
pub use self::handle::Notifications;
pub use self::inbox::Inbox;
pub use self::multicast::Multicast;
pub use self::task::{Notified, NotifiedTask};
pub use self::wait::{Receive, Wait, WaitAll};

pub(crate) use self::claim::NotifiedClaim;
pub(crate) use self::follows::{Follows, Lists};
pub(crate) use self::listener::Listener;
pub(crate) use self::spawned_put::SpawnedPut;
pub(crate) use self::table::NotificationTable;
