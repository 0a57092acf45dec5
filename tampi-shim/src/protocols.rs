//! Which protocol carries a message: thresholds, from what copies and messages cost.
//!
//! With `L` for the time until a word written on one core is seen on another, `R` for what it takes
//! to register memory at both ends and post a read, and the costs of copying a byte that another
//! core has written (`remote`) or this one (`local`), a message of `n` bytes keeps sender or
//! receiver busy for
//!
//! ```text
//! eager       L + 2 n remote             copied into the ring and out of it
//! lazy        L + R + n local + n remote the sender goes on after its own copy
//! rendezvous  2 L + R + n remote         the sender waits for the notice that it was read
//! ```
//!
//! so eager is best up to `(L + R) / remote`, and above that lazy up to `L / local`. Both copies of
//! an eager message move lines between the cores; measured on one core they look cheaper than they
//! are, and lazy better than it is.

use std::ffi::OsString;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use talpf_runtime::{Clock, cores};

use crate::error::Error;

/// The longest messages of each protocol, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocols {
    /// Sent at once, in the cells that announce messages; up to 8 KiB.
    pub eager: usize,
    /// Copied by the sender, which goes on, and read from there. Longer ones are read from the
    /// sender's buffer.
    pub lazy: usize,
    /// A receive with a buffer longer than this, of a known source and tag, offers it to the
    /// source, which writes its message there.
    pub offer: usize,
}

impl Default for Protocols {
    /// What fits [`Costs::default`].
    fn default() -> Self {
        Protocols::of(&Costs::default())
    }
}

impl Protocols {
    /// The environment variables that set the thresholds, in bytes.
    pub const VARIABLES: [&'static str; 3] = ["TAMPI_EAGER", "TAMPI_LAZY", "TAMPI_OFFER"];

    /// What fits these costs.
    pub fn of(costs: &Costs) -> Self {
        let Costs { flight_ns, request_ns, remote_ns_per_kib, local_ns_per_kib } = *costs;
        let bytes = |ns: u64, ns_per_kib: u64| (ns * 1024 / ns_per_kib.max(1)) as usize;
        let eager = bytes(flight_ns + request_ns, remote_ns_per_kib).clamp(256, 8192);
        let lazy = bytes(flight_ns, local_ns_per_kib).min(65_536);
        let lazy = if lazy > eager { lazy } else { 0 };
        Protocols { eager, lazy, offer: 2 * eager.max(lazy) }
    }

    /// These, with what the environment says instead.
    ///
    /// **Errors**: a variable that is no number of bytes.
    pub fn or_environment(self) -> Result<Self, Error> {
        self.or_variables(|name| std::env::var_os(name))
    }

    fn or_variables(mut self, value: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let thresholds = [&mut self.eager, &mut self.lazy, &mut self.offer];
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

    /// With nothing longer than `longest` eager.
    pub(crate) fn clamped(self, longest: usize) -> Self {
        Protocols { eager: self.eager.min(longest), ..self }
    }
}

impl fmt::Display for Protocols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Protocols { eager, lazy, offer } = *self;
        write!(f, "eager to {eager} B, ")?;
        if lazy > eager {
            write!(f, "lazy to {lazy} B, ")?;
        }
        write!(f, "then rendezvous, offered beyond {offer} B")
    }
}

/// What messages are made of costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Until a word written on one core is seen on another.
    pub flight_ns: u64,
    /// Registering memory at both ends and posting a read.
    pub request_ns: u64,
    /// Copying 1 KiB that another core has written.
    pub remote_ns_per_kib: u64,
    /// Copying 1 KiB that this core has written.
    pub local_ns_per_kib: u64,
}

impl Default for Costs {
    /// Those of two cores of an AMD EPYC of 2023.
    fn default() -> Self {
        Costs { flight_ns: 150, request_ns: 250, remote_ns_per_kib: 80, local_ns_per_kib: 30 }
    }
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Costs { flight_ns, request_ns, remote_ns_per_kib, local_ns_per_kib } = *self;
        write!(
            f,
            "flight {flight_ns} ns, request {request_ns} ns, 1 KiB {remote_ns_per_kib} ns from \
             another core, {local_ns_per_kib} ns here"
        )
    }
}

/// Bytes of the copies that are measured, in words.
const WORDS: usize = 1024;
/// Rounds, and how long they may take together: a busy machine does not hold up a program.
const ROUNDS: u64 = 64;
const LONGEST_NS: u64 = 500_000;

impl Costs {
    /// Measures the costs on this machine, once in the life of the process; the defaults on one
    /// core.
    ///
    /// **Cost**: about 200 us, at most half a millisecond.
    pub fn measured(clock: &Clock) -> Self {
        static MEASURED: OnceLock<Costs> = OnceLock::new();
        *MEASURED.get_or_init(|| if cores() > 1 { measure(clock) } else { Costs::default() })
    }
}

/// Two threads in turn fill a block and copy what the other has filled. The best round counts: what
/// disturbs a round makes it longer only.
fn measure(clock: &Clock) -> Costs {
    let block: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
    let turn = AtomicU64::new(0);
    let wait_for = |number: u64| {
        let mut looks = 0u32;
        while turn.load(Ordering::Acquire) < number {
            looks += 1;
            if looks > 1000 {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    };
    let fill = |value: u64| block.iter().for_each(|word| word.store(value, Ordering::Relaxed));
    let copy = |to: &mut [u64]| {
        for (to, word) in to.iter_mut().zip(&block) {
            *to = word.load(Ordering::Relaxed);
        }
    };
    let (mut remote, mut local, mut flight) = (u64::MAX, u64::MAX, u64::MAX);
    let begin = clock.now_ns();
    let measured = std::thread::scope(|scope| {
        let other = || {
            let mut number = 1;
            loop {
                wait_for(number);
                if turn.load(Ordering::Acquire) == u64::MAX {
                    return;
                }
                if number % 4 == 1 {
                    fill(number);
                }
                turn.store(number + 1, Ordering::Release);
                number += 2;
            }
        };
        if std::thread::Builder::new().spawn_scoped(scope, other).is_err() {
            return false;
        }
        let mut to = vec![0; WORDS];
        let mut number = 0;
        for _ in 0..ROUNDS {
            turn.store(number + 1, Ordering::Release);
            wait_for(number + 2);
            let filled = clock.now_ns();
            copy(std::hint::black_box(&mut to));
            let copied = clock.now_ns();
            remote = remote.min(copied - filled);
            fill(number);
            let filled = clock.now_ns();
            copy(std::hint::black_box(&mut to));
            let copied = clock.now_ns();
            local = local.min(copied - filled);
            turn.store(number + 3, Ordering::Release);
            wait_for(number + 4);
            flight = flight.min((clock.now_ns() - copied) / 2);
            number += 4;
            if clock.now_ns() - begin > LONGEST_NS {
                break;
            }
        }
        turn.store(u64::MAX, Ordering::Release);
        true
    });
    if !measured {
        return Costs::default();
    }
    let kib = (WORDS * 8 / 1024) as u64;
    let request_ns = Costs::default().request_ns;
    Costs {
        flight_ns: flight.clamp(50, 1000),
        request_ns,
        remote_ns_per_kib: (remote / kib).clamp(20, 1000),
        local_ns_per_kib: (local / kib).clamp(10, 1000),
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_where_protocols_cost_the_same() {
        let costs =
            Costs { flight_ns: 200, request_ns: 300, remote_ns_per_kib: 100, local_ns_per_kib: 20 };
        let Protocols { eager, lazy, offer } = Protocols::of(&costs);
        assert_eq!((eager, lazy, offer), (5 * 1024, 10 * 1024, 20 * 1024));
        let slow = Costs { local_ns_per_kib: 100, ..costs };
        assert_eq!(Protocols::of(&slow).lazy, 0, "lazy is never best");
        let text = "eager to 5120 B, then rendezvous, offered beyond 10240 B";
        assert_eq!(Protocols::of(&slow).to_string(), text);
    }

    #[test]
    fn variables_say_instead_what_they_say() {
        use std::os::unix::ffi::OsStringExt;
        let set = |wanted: &'static str, value: &'static [u8]| {
            let value = move || OsString::from_vec(value.to_vec());
            move |name: &str| (name == wanted).then(value)
        };
        let before = Protocols { eager: 1, lazy: 2, offer: 3 };
        let after = before.or_variables(set("TAMPI_LAZY", b"512")).unwrap();
        assert_eq!(after, Protocols { lazy: 512, ..before });
        let error = before.or_variables(set("TAMPI_OFFER", b"5\xff")).unwrap_err();
        assert!(error.to_string().starts_with("TAMPI_OFFER=5"), "{error}");
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
