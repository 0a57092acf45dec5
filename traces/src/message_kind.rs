//! Kinds of messages, as shown in a trace.

/// Kind of the operation that moves data between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MessageKind {
    /// Data to the memory of the receiver.
    Put = 1,
    /// Data from the memory of the sender.
    Get,
    /// Notice to the owner that its data was read.
    GetNotice,
    /// Sum formed in the memory of the receiver.
    FetchAndAdd,
    /// Value exchanged in the memory of the receiver.
    CompareAndSwap,
    /// Message that the receiver asks for.
    TwoSided,
}

impl MessageKind {
    /// All kinds, by increasing number.
    pub const ALL: [Self; 6] = [
        Self::Put,
        Self::Get,
        Self::GetNotice,
        Self::FetchAndAdd,
        Self::CompareAndSwap,
        Self::TwoSided,
    ];

    /// Returns the value in the trace, from 1.
    pub const fn number(self) -> i64 {
        self as i64
    }

    /// Returns the label in the trace.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::GetNotice => "notice of a get",
            Self::FetchAndAdd => "fetch-and-add",
            Self::CompareAndSwap => "compare-and-swap",
            Self::TwoSided => "message",
        }
    }
}
