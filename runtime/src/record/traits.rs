//! The properties of a task apart from its accesses and its body.

use super::{Label, Urgency};

/// The role of a task for the waits for its group and for shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Role {
    /// A task that waits for its group wait for.
    Member,
    /// A program that spawns tasks of the group and may wait for them: only shutdown waits for it.
    Main,
    /// A service such as a poller: shutdown waits for it, and its running does not count as
    /// progress.
    Service,
    /// A member that also runs on poisoned data.
    Cleanup,
    /// A task that runs once in every iteration of a recorded graph, for which another task is
    /// counted.
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
/// Lowest of the bits of the virtual time: an exponent of five bits above a mantissa.
const TIME: u32 = 12;
const MANTISSA_BITS: u32 = 15;
const MANTISSA: u64 = (1 << MANTISSA_BITS) - 1;

/// The role of a task, and flags of its declaration.
#[derive(Clone, Copy)]
pub(crate) struct Marks(u32);

impl Marks {
    #[inline]
    pub(crate) const fn from_bits(bits: u32) -> Self {
        Marks(bits)
    }

    #[inline]
    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    #[inline]
    pub(crate) fn role(self) -> Role {
        Role::from_bits(self.0)
    }

    /// Returns `true` if the task runs where it becomes ready instead of being queued.
    #[inline]
    pub(crate) fn is_inline(self) -> bool {
        self.0 & INLINE != 0
    }

    /// Returns `true` if children of the task run inline, and theirs.
    pub(crate) fn is_final(self) -> bool {
        self.0 & FINAL != 0
    }

    /// Returns `true` if the task exchanges data with the outside of its runtime, for drawings.
    pub(crate) fn communicates(self) -> bool {
        self.0 & COMMUNICATES != 0
    }

    /// Returns the virtual time that the body takes.
    pub(crate) fn virtual_ns(self) -> u64 {
        let time = u64::from(self.0 >> TIME);
        (time & MANTISSA) << (time >> MANTISSA_BITS)
    }

    /// Returns `true` if the spawn of the task may run others, since its spawner goes on without
    /// it.
    #[inline]
    pub(crate) fn is_throttled(self) -> bool {
        const { assert!(Role::Member as u32 == 0) };
        self.0 & (ROLE | INLINE | UNTHROTTLED) == 0
    }
}

/// The properties of a task that its declaration sets.
///
/// In two words: a builder is moved from call to call, and moving as a whole what was stored in
/// parts stalls the processor (12 ns a task).
#[derive(Clone, Copy)]
pub(crate) struct Traits {
    pub(crate) label: Label,
    /// [`Marks`], and above them the [`Urgency`].
    bits: u64,
}

impl Traits {
    #[inline]
    pub(crate) fn new(label: Label, role: Role) -> Self {
        Traits { label, bits: u64::from(role as u32) }
    }

    #[inline]
    pub(crate) fn marks(&self) -> Marks {
        Marks(self.bits as u32)
    }

    #[inline]
    pub(crate) fn urgency(&self) -> Urgency {
        Urgency::from_bits((self.bits >> u32::BITS) as i32)
    }

    #[inline]
    pub(crate) fn set_urgency(&mut self, urgency: Urgency) {
        let above = u64::from(urgency.bits() as u32) << u32::BITS;
        self.bits = above | u64::from(self.bits as u32);
    }

    #[inline]
    pub(crate) fn set_role(&mut self, role: Role) {
        self.bits = self.bits & !u64::from(ROLE) | u64::from(role as u32);
    }

    #[inline]
    pub(crate) fn set_inline(&mut self) {
        self.mark(INLINE);
    }

    #[inline]
    pub(crate) fn set_final(&mut self) {
        self.mark(FINAL);
    }

    #[inline]
    pub(crate) fn set_communicates(&mut self) {
        self.mark(COMMUNICATES);
    }

    #[inline]
    pub(crate) fn set_unthrottled(&mut self) {
        self.mark(UNTHROTTLED);
    }

    /// Sets the virtual time that the body takes: exactly up to 32,767 ns, and to 15 significant
    /// bits beyond; 19 hours at most.
    pub(crate) fn set_virtual_ns(&mut self, time_ns: u64) {
        let most = MANTISSA << 31;
        let time_ns = time_ns.min(most);
        let exponent = (u64::BITS - time_ns.leading_zeros()).saturating_sub(MANTISSA_BITS);
        let time = (u64::from(exponent) << MANTISSA_BITS) | (time_ns >> exponent);
        let mask = u64::from(u32::MAX << TIME);
        self.bits = (self.bits & !mask) | (time << TIME);
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
    fn virtual_times_keep_their_significant_bits() {
        let mut traits = Traits::new(Label::new("one"), Role::Main);
        traits.set_urgency(Urgency::default().with_priority(-1));
        traits.set_inline();
        let mut kept = |time_ns| {
            traits.set_virtual_ns(time_ns);
            assert!(traits.marks().role() == Role::Main && traits.marks().is_inline());
            assert_eq!(traits.urgency(), Urgency::default().with_priority(-1));
            traits.marks().virtual_ns()
        };
        for exact in [0, 1, 32_767, 32_768, 65_534, 1 << 40] {
            assert_eq!(kept(exact), exact);
        }
        for time_ns in [65_535, 1_000_001, 123_456_789_012] {
            let kept_ns = kept(time_ns);
            assert!(kept_ns <= time_ns && time_ns - kept_ns <= time_ns >> 14, "{kept_ns}");
        }
        assert_eq!(kept(u64::MAX), 32_767 << 31);
        assert_eq!(kept(5), 5);
    }

    #[test]
    fn every_role_is_kept() {
        for role in [Role::Member, Role::Main, Role::Service, Role::Cleanup, Role::Replayed] {
            assert_eq!(Traits::new(Label::new("one"), role).marks().role(), role);
        }
    }
}
