//! Protocols of messages by length: thresholds, computed from the costs of copies and of requests.
//!
//! Let `L` be the time until a word written on one core is seen on another, `R` the time to
//! register memory at both ends and post a read, and `remote` the time to copy a byte that another
//! core has written. Then the receiver has a message of `n` bytes after
//!
//! ```text
//! eager       L + 2 n remote      copied into the ring, whose lines the receiver has, and out
//! rendezvous  L + R + n remote    read from the buffer of the sender, who waits for it
//! lazy        the same, and a copy before it, so that the sender need not wait
//! ```
//!
//! so eager is best up to `R / remote`. Lazy is never the fastest: it is for programs whose senders
//! have better things to do than to wait for late receivers, and off by default.

use std::ffi::OsString;
use std::fmt;

use crate::costs::Costs;
use crate::error::Error;
use crate::transport::verbs::LONGEST_EAGER;

/// Thresholds between the protocols of messages.
///
/// **Units**: bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocols {
    /// Longest message that is sent eagerly, in the cells of the ring; at most 8 KiB.
    pub eager: usize,
    /// Longest message that the sender copies, so that its send ends at once, and that the receiver
    /// reads from the copy. Longer messages are read from the buffer of the sender. 0 by default:
    /// never.
    pub lazy: usize,
    /// Longest receive buffer that is not announced. A receive of one source and tag into a longer
    /// buffer sends the source a ready-to-receive message (RTR), and the source writes its message
    /// there.
    pub rtr: usize,
}

impl Default for Protocols {
    /// Computes the thresholds for [`Costs::default`].
    fn default() -> Self {
        Protocols::of(&Costs::default())
    }
}

impl Protocols {
    /// Environment variables that set the thresholds, in bytes.
    pub const VARIABLES: [&'static str; 3] = ["TAMPI_EAGER", "TAMPI_LAZY", "TAMPI_RTR"];

    /// Computes the thresholds for `costs`.
    pub fn of(costs: &Costs) -> Self {
        let Costs { request_ns, remote_ns_per_kib } = *costs;
        let eager = request_ns.saturating_mul(1024) / remote_ns_per_kib.max(1);
        let eager = eager.clamp(256, LONGEST_EAGER as u64) as usize;
        Protocols { eager, lazy: 0, rtr: 2 * eager }
    }

    /// Computes the thresholds from the measured costs of this machine; environment variables take
    /// precedence.
    ///
    /// **Errors**: a variable is not a number of bytes.
    pub fn measured() -> Result<Self, Error> {
        let measured = Protocols::of(&Costs::measured());
        Ok(measured.or_variables(|name| std::env::var_os(name))?.clamped())
    }

    fn or_variables(mut self, value: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let thresholds = [&mut self.eager, &mut self.lazy, &mut self.rtr];
        for (name, threshold) in Self::VARIABLES.into_iter().zip(thresholds) {
            if let Some(value) = value(name) {
                *threshold = Self::parse(name, &value.to_string_lossy())?;
            }
        }
        Ok(self)
    }

    fn parse(name: &'static str, value: &str) -> Result<usize, Error> {
        let expected = "give a number of bytes";
        value.trim().parse().map_err(|_| Error::Setting { name, value: value.to_owned(), expected })
    }

    /// Returns the thresholds with `eager` limited to the longest eager message.
    pub(crate) fn clamped(self) -> Self {
        Protocols { eager: self.eager.min(LONGEST_EAGER), ..self }
    }
}

impl fmt::Display for Protocols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Protocols { eager, lazy, rtr } = *self;
        write!(f, "eager to {eager} B, ")?;
        if lazy > eager {
            write!(f, "lazy to {lazy} B, ")?;
        }
        write!(f, "then rendezvous, by RTR beyond {rtr} B")
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_where_protocols_cost_the_same() {
        let costs = Costs { request_ns: 500, remote_ns_per_kib: 100 };
        let protocols = Protocols::of(&costs);
        assert_eq!(protocols, Protocols { eager: 5 * 1024, lazy: 0, rtr: 10 * 1024 });
        let text = "eager to 5120 B, then rendezvous, by RTR beyond 10240 B";
        assert_eq!(protocols.to_string(), text);
        let lazy = Protocols { lazy: 6000, ..protocols };
        let text = "eager to 5120 B, lazy to 6000 B, then rendezvous, by RTR beyond 10240 B";
        assert_eq!(lazy.to_string(), text);
        let slow = Costs { remote_ns_per_kib: 100_000, ..costs };
        assert_eq!(Protocols::of(&slow).eager, 256, "what fits into a few cells");
    }

    #[test]
    fn variables_say_instead_what_they_say() {
        use std::os::unix::ffi::OsStringExt;
        let set = |wanted: &'static str, value: &'static [u8]| {
            let value = move || OsString::from_vec(value.to_vec());
            move |name: &str| (name == wanted).then(value)
        };
        let before = Protocols { eager: 1, lazy: 2, rtr: 3 };
        let after = before.or_variables(set("TAMPI_LAZY", b"512")).unwrap();
        assert_eq!(after, Protocols { lazy: 512, ..before });
        let error = before.or_variables(set("TAMPI_RTR", b"5\xff")).unwrap_err();
        assert!(error.to_string().starts_with("TAMPI_RTR=5"), "{error}");
    }

    #[test]
    fn what_is_no_number_of_bytes_is_refused() {
        assert_eq!(Protocols::parse("TAMPI_EAGER", " 512 ").unwrap(), 512);
        for value in ["", "-1", "1k", "99999999999999999999999"] {
            let error = Protocols::parse("TAMPI_EAGER", value).unwrap_err();
            assert!(error.to_string().starts_with("TAMPI_EAGER="), "{error}");
        }
    }
}
