//! The behaviour of a worker without work.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Longest spinning of an adaptive worker that a text may ask for. **Units**: microseconds.
const MOST_SPIN_US: u64 = 1_000_000;

/// The behaviour of a worker without work.
///
/// As text: `spin`, `adaptive`, `adaptive:N` for spinning of N microseconds, `park`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdlePolicy {
    /// Poll for work without pause. For machines with a core to spare for every worker: new work is
    /// begun at once, and the core is never free for other threads.
    Spin,
    /// Poll for work for the given time, then park. With fewer cores than workers, yield the core a
    /// few times instead and park. A worker that has parked until a time and then finds nothing
    /// parks again without polling.
    Adaptive {
        /// Time that a worker polls before it parks.
        spin: Duration,
    },
    /// Park at once. The core is free for other threads, and new work waits for a thread to be
    /// woken, which takes tens of microseconds.
    Park,
}

impl Default for IdlePolicy {
    fn default() -> Self {
        IdlePolicy::Adaptive { spin: Duration::from_micros(50) }
    }
}

impl fmt::Display for IdlePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdlePolicy::Spin => f.write_str("spin"),
            IdlePolicy::Adaptive { spin } => write!(f, "adaptive (spin {} us)", spin.as_micros()),
            IdlePolicy::Park => f.write_str("park"),
        }
    }
}

/// The error for a text that is no idle policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", NoIdlePolicy::EXPECTED)]
pub struct NoIdlePolicy;

impl NoIdlePolicy {
    /// Description of the valid texts.
    pub const EXPECTED: &str =
        "give `spin`, `adaptive`, `adaptive:N` with N from 0 to 1000000 microseconds, or `park`";
}

impl FromStr for IdlePolicy {
    type Err = NoIdlePolicy;

    fn from_str(text: &str) -> Result<Self, NoIdlePolicy> {
        match text {
            "spin" => Ok(IdlePolicy::Spin),
            "adaptive" => Ok(IdlePolicy::default()),
            "park" => Ok(IdlePolicy::Park),
            _ => {
                let spin_us = text.strip_prefix("adaptive:").and_then(|digits| digits.parse().ok());
                let spin_us = spin_us.filter(|us| *us <= MOST_SPIN_US);
                let spin = spin_us.map(Duration::from_micros).ok_or(NoIdlePolicy)?;
                Ok(IdlePolicy::Adaptive { spin })
            }
        }
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_policy_has_a_text() {
        let adaptive = |us| IdlePolicy::Adaptive { spin: Duration::from_micros(us) };
        for (text, policy) in [
            ("spin", IdlePolicy::Spin),
            ("park", IdlePolicy::Park),
            ("adaptive", IdlePolicy::default()),
            ("adaptive:0", adaptive(0)),
            ("adaptive:1000000", adaptive(1_000_000)),
        ] {
            assert_eq!(text.parse(), Ok(policy), "{text}");
        }
    }

    #[test]
    fn any_other_text_is_refused() {
        for bad in ["", "Spin", "sleep", "adaptive:", "adaptive:1000001", "adaptive:-1", "park:3"] {
            assert_eq!(bad.parse::<IdlePolicy>(), Err(NoIdlePolicy), "{bad}");
        }
    }
}
