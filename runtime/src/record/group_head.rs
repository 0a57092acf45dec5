//! The part of a group that its tasks read.

/// The name and the number of a group, with which its executor's part begins. Records refer to it
/// for as long as they have a task of the group.
#[derive(Debug)]
pub(crate) struct GroupHead {
    name: String,
    number: u32,
}

impl GroupHead {
    pub(crate) fn new(name: String, number: u32) -> Self {
        GroupHead { name, number }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}
