//! The values of the notifications between a writer and its readers in other processes.

use super::exchange::BUFFERS;

/// The end of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Closed,
    /// Lost in a panic.
    Lost,
}

/// A message to a reader, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// To the reader: this buffer was filled. To the writer: this one may be filled next.
    Buffer(u32),
    /// To the reader: no value comes any more.
    Ended(End),
}

const CLOSED: u32 = 16;
const LOST: u32 = 17;

impl Message {
    pub(super) fn to_value(self) -> u32 {
        match self {
            Message::Buffer(number) => number,
            Message::Ended(End::Closed) => CLOSED,
            Message::Ended(End::Lost) => LOST,
        }
    }

    /// Decodes a message. `None` for a value that no end sends.
    pub(super) fn from_value(value: u32) -> Option<Self> {
        match value {
            CLOSED => Some(Message::Ended(End::Closed)),
            LOST => Some(Message::Ended(End::Lost)),
            number => ((number as usize) < BUFFERS).then_some(Message::Buffer(number)),
        }
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_back_and_other_values_are_refused() {
        for value in 0..100 {
            match Message::from_value(value) {
                Some(message) => assert_eq!(message.to_value(), value),
                None => assert!(value > 2 && value != 16 && value != 17),
            }
        }
    }
}
