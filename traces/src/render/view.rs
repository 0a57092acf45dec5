//! Choice of what a picture shows: a view for Paraver, of which this reads what our views use.

use std::str::FromStr;

use super::shipped::SHIPPED;
use crate::MessageKind;
use crate::paraver::{Communication, EventKind, argument};

/// View of a trace: values over time, a histogram of them, or a matrix of messages.
///
/// The file of the view says the same to Paraver, so that both show the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// Title in words; `None` for the label of its event type.
    pub(super) title: Option<String>,
    pub(super) source: Source,
    /// `true` if values are replaced by their signs.
    pub(super) sign: bool,
    pub(super) level: Level,
    /// `true` if messages are lines.
    pub(super) lines: bool,
    pub(super) messages: Messages,
    /// Table that is shown in place of the values over time.
    pub(super) table: Option<Statistic>,
}

/// Function that gives a thread its value: Paraver's, by the names in its files.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// State.
    State,
    /// 1 in any of these states.
    InState(Vec<u32>),
    /// Length of the time in any of these states, as long as it lasts.
    StateDuration(Vec<u32>),
    /// Latest value of an event type.
    Event(u32),
    /// Nanoseconds from the call of the last message sent to its end.
    LastSend,
    /// Sum over the messages between physical send and receive.
    InTransit(Transit),
}

/// Value of a message that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Transit {
    Messages,
    Bytes,
    /// Bytes a millisecond: a thousandth of what Paraver shows, so that whole numbers suffice.
    Bandwidth,
}

/// Messages that a view is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Messages {
    All,
    Data,
    Control,
}

/// Objects of a view. Values of the first two are sums over their threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Level {
    Workload,
    Task,
    Thread,
    Cpu,
}

/// Numbers of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Statistic {
    /// Time of each value.
    Time {
        /// `true` if 0 is a value, too.
        of_zero: bool,
    },
    /// Number of times with each value.
    Bursts,
    /// Average length of a time with each value.
    AverageBurst,
    /// Number of messages from rank to rank.
    Messages,
    /// Bytes from rank to rank.
    Bytes,
}

/// Objects that have a row each, in place of those of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rows {
    /// Paraver's threads: each worker of each rank.
    Worker,
    /// Ranks: their workers together.
    Rank,
    /// Cpus, whichever rank runs there.
    Cpu,
}

impl View {
    /// Names of the views of `traces/cfg`.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// Returns the view of the latest value of an event type, by its number.
    pub fn of_event(kind: u32) -> Self {
        Self { source: Source::Event(kind), title: None, lines: false, ..Self::default() }
    }

    /// Reads the file of a view. Returns `None` if that uses what pictures do not know.
    fn of_file(text: &str) -> Option<Self> {
        let file = File(text);
        let statistic = match (file.value("Analyzer2D.Statistic:"), file.zero_is_a_column()) {
            (None, _) => None,
            (Some("Time"), of_zero) => Some(Statistic::Time { of_zero }),
            (Some("# Bursts"), _) => Some(Statistic::Bursts),
            (Some("Average Burst Time"), _) => Some(Statistic::AverageBurst),
            (Some("#Sends"), _) => Some(Statistic::Messages),
            (Some("Bytes sent"), _) => Some(Statistic::Bytes),
            _ => return None,
        };
        let title = file.value("Analyzer2D.Name:").or(file.value("window_name"))?;
        Some(Self {
            title: Some(title.to_owned()),
            source: file.source()?,
            sign: match argument(file.value("window_compose_functions")?, "compose_thread")? {
                "As Is" => false,
                "Sign" => true,
                _ => return None,
            },
            level: match file.value("window_level")? {
                "workload" => Level::Workload,
                "task" => Level::Task,
                "thread" => Level::Thread,
                "cpu" => Level::Cpu,
                _ => return None,
            },
            lines: file.value("window_comm_lines_enabled") == Some("true"),
            messages: file.messages()?,
            table: statistic,
        })
    }

    /// Returns `true` if the view is of this message, too.
    pub(super) fn has(&self, message: &Communication) -> bool {
        match self.messages {
            Messages::All => true,
            Messages::Data => message.control().is_none(),
            Messages::Control => message.control().is_some(),
        }
    }

    /// Returns `true` if the values are nanoseconds.
    pub(super) fn is_of_times(&self) -> bool {
        match &self.source {
            Source::StateDuration(_) | Source::LastSend => true,
            Source::Event(kind) => EventKind::of(*kind).is_some_and(EventKind::is_time),
            Source::State | Source::InState(_) | Source::InTransit(_) => false,
        }
    }

    /// Returns `true` if the value of an object is a sum.
    pub(super) fn is_sum(&self) -> bool {
        matches!(self.source, Source::InTransit(_))
            || matches!(self.level, Level::Workload | Level::Task)
    }
}

impl Default for View {
    /// Returns the view of states.
    fn default() -> Self {
        Self {
            title: Some("States".to_owned()),
            source: Source::State,
            sign: false,
            level: Level::Thread,
            lines: true,
            messages: Messages::Data,
            table: None,
        }
    }
}

impl FromStr for View {
    type Err = String;

    /// Parses a name of [`View::names`], the label of an event type of ours in lower case with hyphens,
    /// or the number of one of any trace.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, file)) = SHIPPED.iter().find(|(name, _)| *name == text) {
            return Self::of_file(file).ok_or_else(|| format!("view `{text}` is for Paraver only"));
        }
        if let Some(kind) = EventKind::ALL.iter().find(|kind| label(**kind) == text) {
            return Ok(Self::of_event(kind.number()));
        }
        text.parse().map(Self::of_event).map_err(|_| {
            let names = Self::names().collect::<Vec<_>>().join(", ");
            format!("no view is called `{text}`; there are {names}, and numbers of event types")
        })
    }
}

fn label(kind: EventKind) -> String {
    kind.name().to_lowercase().replace(' ', "-")
}

/// Lines of the file of a view, each with a key.
struct File<'a>(&'a str);

impl<'a> File<'a> {
    fn value(&self, key: &str) -> Option<&'a str> {
        self.0.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
    }

    fn source(&self) -> Option<Source> {
        let functions = self.value("window_selected_functions")?;
        Some(match argument(functions, "thread")? {
            "State As Is" => Source::State,
            "In State" => Source::InState(self.states()?),
            "State Record Dur." => Source::StateDuration(self.states()?),
            "Last Evt Val" => {
                Source::Event(self.value("window_filter_module evt_type 1")?.parse().ok()?)
            }
            "Last Send Dur." => Source::LastSend,
            "Send Messages in Transit" => Source::InTransit(Transit::Messages),
            "Send Bytes in Transit" => Source::InTransit(Transit::Bytes),
            "Send BandWidth" => Source::InTransit(Transit::Bandwidth),
            _ => return None,
        })
    }

    /// Returns the messages whose tags the filter takes: Paraver knows control messages by these.
    fn messages(&self) -> Option<Messages> {
        let filter = argument(self.value("window_selected_functions")?, "tag_msg")?;
        let mut lines = self.0.lines();
        let bound = lines.find_map(|line| line.strip_prefix("window_filter_module tag_msg 1 "));
        let bound = bound.and_then(|bound| bound.parse::<u64>().ok());
        match (filter, bound) {
            ("All", _) => Some(Messages::All),
            ("<", Some(MessageKind::FIRST_CONTROL_TAG)) => Some(Messages::Data),
            (">", Some(MessageKind::LAST_DATA_TAG)) => Some(Messages::Control),
            _ => None,
        }
    }

    /// Returns the states of a list as `thread In State { 1, { 1 1.0 } }`: how many, then each.
    fn states(&self) -> Option<Vec<u32>> {
        let module = self.value("window_semantic_module")?;
        let (_, list) = module.rsplit_once('{')?;
        let (list, _) = list.split_once('}')?;
        let state = |text: &str| text.strip_suffix(".0")?.parse().ok();
        list.split_ascii_whitespace().skip(1).map(state).collect()
    }

    /// Returns `true` if the columns of a histogram begin at 0. Those that Paraver chooses do not.
    fn zero_is_a_column(&self) -> bool {
        self.value("Analyzer2D.ComputeYScale:") == Some("False")
            && self.value("Analyzer2D.Minimum:") == Some("0.0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_view_of_its_own() {
        let views: Vec<View> = View::names().map(|name| name.parse().unwrap()).collect();
        let distinct: std::collections::HashSet<&View> = views.iter().collect();
        assert_eq!(distinct.len(), SHIPPED.len());
        assert_eq!("states".parse(), Ok(View::default()));
        let parsed = |name: &str| name.parse::<View>().unwrap();
        assert_eq!(parsed("useful-duration").source, Source::StateDuration(vec![1]));
        for name in ["states", "messages-matrix", "messages-in-flight", "call-to-end-of-sync"] {
            assert_eq!(parsed(name).messages, Messages::Data, "{name}");
        }
        for name in ["control-messages", "control-messages-matrix"] {
            assert_eq!(parsed(name).messages, Messages::Control, "{name}");
        }
        assert_eq!(parsed("parallelism-profile").table, Some(Statistic::Time { of_zero: true }));
        assert!(parsed("tasks-running").sign);
    }

    #[test]
    fn event_types_have_views_too() {
        for kind in EventKind::ALL {
            assert!(label(kind).parse::<View>().is_ok());
        }
        assert_eq!("11".parse(), Ok(View::of_event(11)));
        assert!("task".parse::<View>().unwrap_err().contains("task-type"));
    }
}
