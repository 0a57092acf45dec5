//! Times and counts of services, each with its reason.

use std::time::Duration;

/// Patience of a service that sleeps on an event: about as long as it takes to wake a thread that
/// sleeps, so that a wait takes at most twice as long as with the better choice.
pub const PATIENCE: Duration = Duration::from_micros(100);
/// Patience of a service for which nothing is under way: short, as nobody waits, but not 0, as a
/// program often starts the next operation at once, and a wake-up costs more than a few polls.
pub(super) const PATIENCE_WITHOUT_WORK: Duration = Duration::from_micros(10);
/// Patience of a service that naps: several of its usual naps, as nothing ends a nap, and a
/// service that naps keeps all others waiting that wait for its process.
pub const PATIENCE_BEFORE_NAPS: Duration = Duration::from_millis(1);
/// Patience of a service that waits for other processes: a hundredth of a percent of a wait of 10 s,
/// and as long as processes that exchange something in short steps are usually apart. A wake-up from
/// outside takes two threads.
pub(super) const PATIENCE_FOR_PROCESSES: Duration = Duration::from_millis(1);
/// The same where cores are oversubscribed: a few of the slices in which the others need the core.
pub const PATIENCE_OVERSUBSCRIBED: Duration = Duration::from_micros(300);
/// Patience while other threads advance the same work: their progress brings no event here, so this
/// is longer than they usually compute in between.
pub(super) const PATIENCE_WHILE_OTHERS_POLL: Duration = Duration::from_millis(1);

/// First nap: shorter than any kernel sleeps for (50 us by default), so that a worker which spins
/// for longer than that polls again before it parks.
pub(super) const SHORTEST_NAP: Duration = Duration::from_micros(5);
/// Longest nap of a service that has napped for a short time: 5,000 polls a second, each of 10 to 40 us with
/// what the kernel does for it.
pub(super) const LONGEST_NAP: Duration = Duration::from_micros(200);
/// Longest nap of a service that has napped for long: what passes several processes that nap is delayed in each.
pub(super) const LONGEST_LATE_NAP: Duration = Duration::from_millis(1);
/// Time that a service has napped, as a multiple of its longest nap, beyond which that is longer than
/// `LONGEST_NAP`: so naps delay what it waits for by a hundredth.
pub(super) const NAPPED_PER_NAP: u64 = 100;
/// Nap after one of no time, where programs allow that.
pub(super) const NAP_AFTER_NONE: Duration = Duration::from_micros(1);

/// Longest wait for an idle worker to poll in place of the task, and the pause between polls of what
/// other threads advance, too: long beside a poll, short beside a task.
pub(super) const LONGEST_WAIT: Duration = Duration::from_micros(20);

/// Shortest period in virtual time of polls for what is not announced: about as long as an idle
/// worker takes for a poll in real time.
pub(super) const PERIOD_UNANNOUNCED: Duration = Duration::from_nanos(100);

/// Empty polls between readings of the clock, which takes about as long as a poll of memory.
pub(super) const POLLS_PER_READING: u32 = 16;

/// Polls of a task that waits and whose worker has nothing else to do: about a microsecond, which
/// is what it costs to suspend the task and to wake it.
pub(super) const SPARE_POLLS: u32 = 8;
/// Polls while another worker is in a task: as long as a few short tasks take, one of which may
/// cause what the first task waits for.
pub const SPARE_POLLS_BESIDE_TASKS: u32 = 64;
