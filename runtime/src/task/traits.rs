//! The properties of a task apart from its accesses and its body.

use super::{Label, Urgency};

/// The part a task plays for those who wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Role {
    /// Waits for its group wait for it.
    Member,
    /// A program that spawns tasks of the group and may wait for them: only shutdown waits for it.
    Main,
    /// A service such as a poller: shutdown waits for it, and its running is no sign of progress.
    Service,
    /// As `Member`, and runs on data that failed tasks left undefined.
    Cleanup,
    /// Runs once in every iteration of a recorded graph, of which another task completes.
    Replayed,
}

impl Role {
    #[inline]
    fn from_bits(bits: u32) -> Self {
        match bits & ROLE {
            0 => Role::Member,
            1 => Role::Main,
            2 => Role::Service,
            3 => Role::Cleanup,
            _ => Role::Replayed,
        }
    }
}

const ROLE: u32 = 0xff;
const INLINE: u32 = 1 << 8;
const FINAL: u32 = 1 << 9;
const COMMUNICATES: u32 = 1 << 10;
const UNTHROTTLED: u32 = 1 << 11;

/// The role of a task, and what its declaration says of it beside.
#[derive(Clone, Copy)]
pub(crate) struct Marks(u32);

impl Marks {
    #[inline]
    pub(super) const fn from_bits(bits: u32) -> Self {
        Marks(bits)
    }

    #[inline]
    pub(super) const fn bits(self) -> u32 {
        self.0
    }

    #[inline]
    pub(super) fn role(self) -> Role {
        Role::from_bits(self.0)
    }

    /// Returns whether the task runs where it becomes ready instead of being queued.
    #[inline]
    pub(crate) fn is_inline(self) -> bool {
        self.0 & INLINE != 0
    }

    /// Returns whether children of the task run inline, and theirs.
    pub(super) fn is_final(self) -> bool {
        self.0 & FINAL != 0
    }

    /// Returns whether the task exchanges data with what its runtime does not see, for drawings.
    pub(crate) fn communicates(self) -> bool {
        self.0 & COMMUNICATES != 0
    }

    /// Returns whether the spawn of the task may run others: its spawner goes on without it.
    #[inline]
    pub(super) fn is_throttled(self) -> bool {
        const { assert!(Role::Member as u32 == 0) };
        self.0 & (ROLE | INLINE | UNTHROTTLED) == 0
    }
}

/// The properties of a task that its declaration sets.
///
/// In two words: a builder is moved from call to call, and what was stored in parts and is moved as
/// a whole stalls the processor (12 ns a task).
#[derive(Clone, Copy)]
pub(crate) struct Traits {
    pub(crate) label: Label,
    /// [`Marks`], and above them the [`Urgency`].
    bits: u64,
}

impl Traits {
    #[inline]
    pub(super) fn new(label: Label, role: Role) -> Self {
        Traits { label, bits: u64::from(role as u32) }
    }

    #[inline]
    pub(crate) fn marks(&self) -> Marks {
        Marks(self.bits as u32)
    }

    #[inline]
    pub(super) fn urgency(&self) -> Urgency {
        Urgency::from_bits((self.bits >> u32::BITS) as i32)
    }

    #[inline]
    pub(super) fn set_urgency(&mut self, urgency: Urgency) {
        let above = u64::from(urgency.bits() as u32) << u32::BITS;
        self.bits = above | u64::from(self.bits as u32);
    }

    #[inline]
    pub(super) fn set_role(&mut self, role: Role) {
        self.bits = self.bits & !u64::from(ROLE) | u64::from(role as u32);
    }

    #[inline]
    pub(super) fn set_inline(&mut self) {
        self.mark(INLINE);
    }

    #[inline]
    pub(super) fn set_final(&mut self) {
        self.mark(FINAL);
    }

    #[inline]
    pub(super) fn set_communicates(&mut self) {
        self.mark(COMMUNICATES);
    }

    #[inline]
    pub(super) fn set_unthrottled(&mut self) {
        self.mark(UNTHROTTLED);
    }

    #[inline]
    fn mark(&mut self, mark: u32) {
        self.bits |= u64::from(mark);
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_property_leaves_the_others() {
        let mut traits = Traits::new(Label::new("one"), Role::Service);
        traits.set_urgency(Urgency::default().with_priority(-7));
        traits.set_inline();
        traits.set_role(Role::Replayed);
        traits.set_urgency(traits.urgency().with_cost(100));
        assert_eq!(traits.urgency(), Urgency::default().with_priority(-7).with_cost(100));
        assert_eq!(traits.marks().role(), Role::Replayed);
        assert!(traits.marks().is_inline() && !traits.marks().is_final());
        assert!(!traits.marks().is_throttled());
    }

    #[test]
    fn every_role_is_kept() {
        for role in [Role::Member, Role::Main, Role::Service, Role::Cleanup, Role::Replayed] {
            assert_eq!(Traits::new(Label::new("one"), role).marks().role(), role);
        }
    }
}
