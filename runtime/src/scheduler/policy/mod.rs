//! The policies of the scheduler, each of which a runtime can be made without.
//!
//! A policy changes when and where a ready task runs, and never which tasks wait for which.
//! `talpf-bench ablation` measures programs without one policy after another. The tables in the
//! files of this folder have its largest figures on two cores of an AMD EPYC (idle policy
//! `adaptive`, spin 50 us; medians of 5 interleaved rounds, of 14 for `two_sided`): the cost, as
//! time or as the inverse of a rate, without the policy over that with all policies. Noise is the
//! same with nothing left out.

mod body_share;
mod catch_up;
mod cycles;
pub(super) mod depth_first;
mod group_affinity;
mod help_short;
pub(super) mod next_slot;
mod preferred_workers;
pub(super) mod rest;
pub(super) mod steal_batch;
pub(super) mod steal_delay;
mod step_blocks;
pub(super) mod throttle;
pub(super) mod wake_preferred;

use std::fmt;
use std::str::FromStr;

pub(crate) use self::group_affinity::Affinity;
pub(crate) use self::preferred_workers::preferred_workers;
pub(crate) use self::step_blocks::begins_block;

/// A policy of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// A worker runs the task that it has made ready last right after the present one, past all
    /// queues.
    NextSlot,
    /// Tasks that a closing access makes ready go onto a stack, before those that were spawned.
    DepthFirst,
    /// Every eighth step of a replayed graph waits for the step before.
    StepBlocks,
    /// Replayed tasks have preferred workers.
    PreferredWorkers,
    /// Replayed tasks that wait for each other in a cycle have the same preferred worker.
    Cycles,
    /// Tasks of a group with large tiles go to the worker of the group.
    GroupAffinity,
    /// A thief waits as long as the tiles of a group with an affinity take to move.
    StealDelay,
    /// A thief that has stolen short tasks rests.
    Rest,
    /// A thief rests only if its stolen tasks spend little of their time in their bodies.
    BodyShare,
    /// A spawner that is ahead runs tasks.
    Throttle,
    /// A spawner runs short tasks of which plenty are ready, however far it is ahead.
    HelpShort,
    /// A spawner that is far ahead steals, and waits for the other workers.
    CatchUp,
    /// A thief takes several tasks at once.
    StealBatch,
    /// A push into an affinity queue wakes its worker rather than another.
    WakePreferred,
}

impl Policy {
    /// All policies with their names.
    pub const ALL: [(Policy, &'static str); 14] = [
        (Policy::NextSlot, "next_slot"),
        (Policy::DepthFirst, "depth_first"),
        (Policy::StepBlocks, "step_blocks"),
        (Policy::PreferredWorkers, "preferred_workers"),
        (Policy::Cycles, "cycles"),
        (Policy::GroupAffinity, "group_affinity"),
        (Policy::StealDelay, "steal_delay"),
        (Policy::Rest, "rest"),
        (Policy::BodyShare, "body_share"),
        (Policy::Throttle, "throttle"),
        (Policy::HelpShort, "help_short"),
        (Policy::CatchUp, "catch_up"),
        (Policy::StealBatch, "steal_batch"),
        (Policy::WakePreferred, "wake_preferred"),
    ];
}

/// A set of policies. The default is all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policies {
    /// A bit for each policy that is left out.
    without: u32,
}

impl Policies {
    /// All policies.
    pub const ALL: Self = Policies { without: 0 };

    /// Returns the policies of this set except one.
    pub const fn without(self, policy: Policy) -> Self {
        Policies { without: self.without | 1 << policy as u32 }
    }

    /// Returns `true` if the set has a policy.
    #[inline]
    pub const fn has(self, policy: Policy) -> bool {
        self.without & 1 << policy as u32 == 0
    }
}

impl Default for Policies {
    fn default() -> Self {
        Self::ALL
    }
}

/// The error of a text that does not name policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPolicy;

impl NoPolicy {
    /// Description of the texts that are allowed, for reports of errors.
    pub const EXPECTED: &'static str =
        "give names of scheduling policies, separated by commas, as in `next_slot,rest`";
}

impl fmt::Display for NoPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::EXPECTED)
    }
}

impl FromStr for Policies {
    type Err = NoPolicy;

    /// Reads the policies to leave out, separated by commas.
    fn from_str(text: &str) -> Result<Self, NoPolicy> {
        let names = text.split(',').filter(|name| !name.is_empty());
        names.map(|name| Policy::ALL.into_iter().find(|(_, known)| *known == name)).try_fold(
            Self::ALL,
            |policies, found| {
                let (policy, _) = found.ok_or(NoPolicy)?;
                Ok(policies.without(policy))
            },
        )
    }
}

#[cfg(all(test, not(talpf_loom), not(talpf_shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn the_policies_that_a_text_names_are_left_out() {
        let policies = "rest,next_slot".parse::<Policies>().unwrap();
        let left_out = Policy::ALL.into_iter().filter(|(policy, _)| !policies.has(*policy));
        assert_eq!(left_out.map(|(_, name)| name).collect::<Vec<_>>(), ["next_slot", "rest"]);
        assert_eq!("".parse(), Ok(Policies::ALL));
        assert_eq!("rest,slot".parse::<Policies>(), Err(NoPolicy));
    }

    #[test]
    fn every_policy_is_listed_once_in_the_order_of_its_number() {
        let numbers = Policy::ALL.map(|(policy, _)| policy as usize);
        assert_eq!(numbers.to_vec(), (0..Policy::ALL.len()).collect::<Vec<_>>());
    }
}
