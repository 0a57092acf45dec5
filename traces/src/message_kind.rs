//! Kinds of messages, as shown in a trace.

/// Bits of such a tag below the number of the kind: the round.
const ROUND_BITS: u32 = 48;

/// Kind of the operation that moves data between ranks, or of a control message.
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
    /// Control message with the number of operations that the sender has for the receiver.
    Count,
    /// Control message of a step in which ranks learn that all have begun to exchange counts.
    ExchangeStep,
    /// Control message of a step of a barrier.
    BarrierStep,
    /// Control message that its sender has ended a round.
    Acknowledgement,
}

impl MessageKind {
    /// Bit of the tags of control messages; those of other messages are below it.
    pub(crate) const FIRST_CONTROL_TAG: u64 = 1 << 52;
    pub(crate) const LAST_DATA_TAG: u64 = Self::FIRST_CONTROL_TAG - 1;

    /// All kinds, by increasing number.
    pub const ALL: [Self; 10] = [
        Self::Put,
        Self::Get,
        Self::GetNotice,
        Self::FetchAndAdd,
        Self::CompareAndSwap,
        Self::TwoSided,
        Self::Count,
        Self::ExchangeStep,
        Self::BarrierStep,
        Self::Acknowledgement,
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
            Self::Count => "count",
            Self::ExchangeStep => "step of an exchange",
            Self::BarrierStep => "step of a barrier",
            Self::Acknowledgement => "acknowledgement",
        }
    }

    /// Returns `true` for a control message: one of the layer itself, without data of the program.
    pub const fn is_control(self) -> bool {
        match self {
            Self::Put
            | Self::Get
            | Self::GetNotice
            | Self::FetchAndAdd
            | Self::CompareAndSwap
            | Self::TwoSided => false,
            Self::Count | Self::ExchangeStep | Self::BarrierStep | Self::Acknowledgement => true,
        }
    }

    /// Returns the kind with this value in the trace.
    pub(crate) fn of(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// Returns the tag of a message of this kind, given its round or the tag of the program: of a control
    /// message 2^52, its number times 2^48, and its round modulo 2^48.
    pub(crate) const fn tag(self, number: u64) -> u64 {
        if self.is_control() {
            Self::FIRST_CONTROL_TAG | (self as u64) << ROUND_BITS | (number % (1 << ROUND_BITS))
        } else {
            number % Self::FIRST_CONTROL_TAG
        }
    }

    /// Returns the kind of the control message with this tag; `None` for other messages.
    pub(crate) fn of_tag(tag: i64) -> Option<Self> {
        let tag = u64::try_from(tag).ok()?;
        let kind = tag.checked_sub(Self::FIRST_CONTROL_TAG)? >> ROUND_BITS;
        Self::of(kind.cast_signed()).filter(|kind| kind.is_control())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_of_a_control_message_has_its_kind_and_is_exact() {
        for kind in MessageKind::ALL {
            for round in [0, 1, (1 << 48) - 1, 1 << 48, (1 << 52) - 1, 1 << 52, u64::MAX] {
                let tag = kind.tag(round);
                assert!(tag < 1 << 53, "{kind:?}");
                assert_eq!((tag >= MessageKind::FIRST_CONTROL_TAG), kind.is_control(), "{kind:?}");
                assert_eq!(
                    MessageKind::of_tag(tag.cast_signed()),
                    kind.is_control().then_some(kind),
                    "{round}"
                );
            }
            assert_eq!(kind.tag(17) % (1 << ROUND_BITS), 17);
        }
    }

    #[test]
    fn tags_of_others_are_of_no_control_message() {
        let beyond = (MessageKind::FIRST_CONTROL_TAG | 11 << ROUND_BITS).cast_signed();
        for tag in [i64::MIN, -1, 0, i64::from(u32::MAX), 1 << 52, 1 << 53, beyond, i64::MAX] {
            assert_eq!(MessageKind::of_tag(tag), None, "{tag}");
        }
    }
}
