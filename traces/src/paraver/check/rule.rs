//! Rules of the linter, and the severity of their breaches.

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; the trace is still clean.
    Note,
    /// Paraver loads the trace, and shows less than it has, or something else.
    Warning,
    /// Paraver refuses the trace, loses a part of it, or shows nonsense.
    Error,
}

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $severity:ident $rule:ident,)+) => {
        /// Subject of a finding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $($(#[doc = $doc])+ $rule,)+
        }

        impl Rule {
            /// All rules, files before header before records.
            pub const ALL: &[Self] = &[$(Self::$rule,)+];

            /// Returns the severity of a breach.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Self::$rule => Severity::$severity,)+
                }
            }
        }
    };
}

// A table, so that no rule is without severity, text and place in the list.
rules! {
    /// The file starts with a byte order mark, which hides its first word.
    Error ByteOrderMark,
    /// A line of many megabytes: hardly a trace.
    Error OverlongLine,
    /// A `.prv` line ends in a carriage return.
    Warning CarriageReturn,
    /// A label file has carriage returns: all its labels are lost.
    Error LabelCarriageReturn,
    /// A blank line between records.
    Warning BlankLine,
    /// The last line has no end: the file may be cut short.
    Warning NoFinalNewline,

    /// The first word is not exactly `#Paraver`.
    Error NotParaver,
    /// A part of the header is missing, malformed or contradicts another.
    Error HeaderForm,
    /// The duration has no unit: it counts as microseconds.
    Warning MissingTimeUnit,
    /// The duration has a unit that Paraver takes for microseconds.
    Error UnknownTimeUnit,
    /// More threads, tasks or cpus than 16 bits can number.
    Error TooManyObjects,
    /// A task is on a node that does not exist: Paraver hangs or refuses.
    Error NodeOutOfRange,
    /// Fewer communicator lines than the header announces.
    Error CommunicatorCount,
    /// A communicator line that the header does not announce.
    Warning UncountedCommunicator,
    /// A communicator line whose members are miscounted or do not exist.
    Warning CommunicatorForm,

    /// A comment that says that records are missing.
    Warning Incomplete,
    /// A line that does not start like a record.
    Error UnknownRecord,
    /// A global communication, which Paraver skips.
    Warning GlobalCommunication,
    /// A record with a field missing or too many.
    Error FieldCount,
    /// A record that ends in a colon.
    Warning TrailingColon,
    /// A blank inside a record.
    Error BlankInRecord,
    /// A field with a decimal point: the fields after it shift.
    Error FloatNumber,
    /// A field that is not an integer.
    Error NotInteger,
    /// A number that wraps around, or is negative where none may be.
    Error NumberRange,

    /// An application that the header does not have.
    Error ApplicationOutOfRange,
    /// A task that the application does not have.
    Error TaskOutOfRange,
    /// A thread that the task does not have.
    Error ThreadOutOfRange,
    /// A cpu beyond those of all nodes.
    Error CpuOutOfRange,
    /// A cpu of another node than the task's: the record is dropped.
    Error CpuOfOtherNode,
    /// A cpu where the header declares no nodes: the record is refused.
    Error CpuWithoutNodes,
    /// A state or a message on cpu 0 although nodes are declared: missing from views by cpu.
    Warning NoCpu,
    /// Threads without a record: empty rows.
    Note UnusedThread,

    /// No record at all: the load fails.
    Error NoRecords,
    /// A time beyond the duration in the header: cutting goes wrong.
    Error TimeAfterEnd,
    /// The duration goes beyond the last record.
    Warning EmptyTail,
    /// Times too large to be exact.
    Warning ImpreciseTime,
    /// A record that begins before the one above it.
    Error Unsorted,

    /// A state that ends before it begins.
    Error StateReversed,
    /// A state that begins before the last one of its thread ends.
    Error StateOverlap,
    /// Time of a thread without a state, in a trace that has states.
    Warning StateGap,
    /// A cpu that runs two threads at once.
    Warning CpuRunsTwo,
    /// A task that begins on a thread where it has not ended.
    Warning TaskBeginsTwice,
    /// A message physically sent before its logical send: often the field
    /// order.
    Error SendOrder,
    /// A message that arrives before it is sent.
    Error ReceiveBeforeSend,
    /// A message whose logical receive is before its logical send.
    Warning LogicalReceiveBeforeSend,
    /// An event type that cannot have a label.
    Warning TypeBeyondLabels,
    /// A value too large to be exact.
    Warning ImpreciseValue,

    /// A trace without a `.pcf` file.
    Note NoLabelFile,
    /// A section name that Paraver does not know, or in lower case.
    Error UnknownSection,
    /// An event type without its colour column: the label is lost.
    Error MissingColour,
    /// A line of the `.pcf` that Paraver skips.
    Error LabelForm,
    /// A number too large to have a label.
    Error LabelRange,
    /// A second label of a state, an event type or a value.
    Warning LabelTwice,
    /// A labelled state without a colour.
    Warning UncolouredState,
    /// A state of the trace that has no label.
    Warning UnlabelledState,
    /// An event type of the trace that has no label.
    Warning UnlabelledType,
    /// A value without a label although its type labels values.
    Warning UnlabelledValue,

    /// A trace without a `.row` file.
    Note NoRowFile,
    /// A `LEVEL` line that Paraver does not know.
    Error RowLevel,
    /// More or fewer names than a `LEVEL` line announces.
    Error RowCount,
    /// A level of another size than the header's.
    Warning RowSize,
    /// A blank line among names: it counts as one and shifts the rest.
    Error BlankRowName,

    /// A `.cfg` file without its first line, with a miscounted number of windows, or a filter that
    /// is none.
    Error ViewForm,
    /// A function, level or statistic of a view that Paraver does not know.
    Error UnknownWord,
    /// A view of an event type that our traces do not have.
    Warning UnknownType,
}
