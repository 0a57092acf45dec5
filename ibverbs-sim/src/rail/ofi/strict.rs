//! Strict forms of a provider: it promises no more than some networks do, so that tests over TCP find what relies on
//! more.
//!
//! A choice names them as `strict=order+full`, after provider and interface. They are for tests alone, and no
//! document of the program lists them.
//!
//! | form | imitates |
//! |---|---|
//! | `order` | completions of messages and reads in a random order, and late |
//! | `full` | full queues: a call of three is refused with `-FI_EAGAIN` |
//! | `keys` | keys that the provider chooses (`FI_MR_PROV_KEY`) |
//! | `local` | memory of local operations is registered (`FI_MR_LOCAL`) |
//! | `endpoint` | that, and memory belongs to one endpoint (`FI_MR_ENDPOINT`): nothing is read by RMA |
//!
//! No form is about notices of RMA, of 0 or 4 bytes, or about the order of the bytes of a write: this crate asks for
//! neither, as it writes nothing by RMA. Notices of rails are messages.

use std::{fmt, str::FromStr};

use talpf_primitives::Mutex;

use super::abi::{self, Completion};
use crate::random::Random;

/// Names of the forms, by their bits.
const NAMES: [&str; 5] = ["order", "full", "keys", "local", "endpoint"];
const ORDER: u8 = 1;
const FULL: u8 = 1 << 1;
const KEYS: u8 = 1 << 2;
const LOCAL: u8 = 1 << 3;
const ENDPOINT: u8 = 1 << 4;

/// A set of forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Strict(u8);

/// Error of a text that names no set of forms.
pub(super) struct NoForms;

impl FromStr for Strict {
    type Err = NoForms;

    fn from_str(text: &str) -> Result<Self, NoForms> {
        let bit = |name: &str| NAMES.iter().position(|known| *known == name);
        text.split('+').try_fold(Self(0), |Self(all), name| {
            let bit = 1 << bit(name).ok_or(NoForms)?;
            if all & bit == 0 { Ok(Self(all | bit)) } else { Err(NoForms) }
        })
    }
}

impl fmt::Display for Strict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = (0..).zip(NAMES).filter(|(bit, _)| self.has(1 << bit));
        let names: Vec<_> = names.map(|(_, name)| name).collect();
        f.write_str(&names.join("+"))
    }
}

impl Strict {
    fn has(self, form: u8) -> bool {
        self.0 & form != 0
    }

    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Returns the bits of `mr_mode` that the provider has beside its own.
    pub(super) fn memory_mode(self) -> i32 {
        let bit = |form, mode| if self.has(form) { mode } else { 0 };
        bit(LOCAL, abi::MR_LOCAL) | bit(ENDPOINT, abi::MR_LOCAL | abi::MR_ENDPOINT)
    }
}

/// State of a provider in strict forms.
pub(super) struct Imitation {
    forms: Strict,
    random: Mutex<Random>,
}

impl Imitation {
    pub(super) fn new(forms: Strict) -> Self {
        Self { forms, random: Mutex::new(Random::new(0)) }
    }

    pub(super) fn forms(&self) -> Strict {
        self.forms
    }

    fn random(&self) -> u64 {
        self.random.lock().next_u64()
    }

    /// Returns `true` if a call is to find a full queue.
    pub(super) fn is_full(&self) -> bool {
        self.forms.has(FULL) && self.random().is_multiple_of(3)
    }

    /// Returns the key of a registration for which `wanted` was asked.
    pub(super) fn key(&self, wanted: u64) -> u64 {
        if self.forms.has(KEYS) { self.random() } else { wanted }
    }

    /// Returns the completions of a queue that come late.
    pub(super) fn late(&self) -> Option<Late> {
        self.forms.has(ORDER).then(Late::default)
    }
}

/// Completions that are there and were not taken, as they are late.
#[derive(Default)]
pub(super) struct Late(Mutex<Pool>);

struct Pool {
    completions: Vec<Completion>,
    random: Random,
}

impl Default for Pool {
    fn default() -> Self {
        Self { completions: Vec::new(), random: Random::new(0) }
    }
}

// SAFETY: pointers of completions are numbers to this crate until they were checked.
#[allow(unsafe_code, reason = "completions may go to other threads")]
unsafe impl Send for Pool {}

impl Late {
    /// Returns `true` if completions are there.
    pub(super) fn is_some(&self) -> bool {
        !self.0.lock().completions.is_empty()
    }

    /// Adds completions.
    pub(super) fn add(&self, completions: &[Completion]) {
        self.0.lock().completions.extend_from_slice(completions);
    }

    /// Takes about half of the completions, in a random order. Returns their number.
    pub(super) fn take(&self, into: &mut [Completion]) -> usize {
        let mut pool = self.0.lock();
        let half = pool.completions.len().div_ceil(2).min(into.len());
        let mut count = 0;
        for place in &mut into[..half] {
            let Some(completion) = pool.next() else { break };
            *place = completion;
            count += 1;
        }
        count
    }
}

impl Pool {
    /// Takes a completion. That with which a buffer returns comes after all of that buffer.
    fn next(&mut self) -> Option<Completion> {
        let all = &self.completions;
        let start = self.random.next_u64() as usize % all.len().max(1);
        let may_come = |at: &usize| {
            let of_buffer = |other: &Completion| other.op_context == all[*at].op_context;
            let is_last = all[*at].flags & abi::MULTI_RECV != 0;
            !is_last || all.iter().filter(|other| of_buffer(other)).count() == 1
        };
        let at = (start..all.len()).chain(0..start).find(may_come)?;
        Some(self.completions.swap_remove(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_come_back_and_others_are_refused() {
        for text in ["order", "full+keys", "order+full+keys+local+endpoint"] {
            assert_eq!(text.parse::<Strict>().ok().unwrap().to_string(), text);
        }
        for text in ["", "order+", "disorder", "order+order"] {
            assert!(text.parse::<Strict>().is_err(), "{text}");
        }
    }

    #[test]
    fn completions_come_late_in_another_order_and_buffers_return_last() {
        let of = |context: usize, data: u64, flags| Completion {
            op_context: std::ptr::without_provenance_mut(context),
            data,
            flags,
            ..Completion::EMPTY
        };
        let mut given: Vec<_> = (0..40).map(|data| of(8 + data as usize % 2, data, 0)).collect();
        given.extend([of(8, 40, abi::MULTI_RECV), of(9, 41, abi::MULTI_RECV)]);
        let late = Late::default();
        let (mut seen, mut room) = (Vec::new(), [Completion::EMPTY; 64]);
        late.add(&given);
        while seen.len() < given.len() {
            let count = late.take(&mut room);
            assert!(count > 0, "all come");
            seen.extend(room[..count].iter().map(|completion| completion.data));
        }
        assert!(!late.is_some());
        let at = |data| seen.iter().position(|seen| *seen == data).unwrap();
        assert!((0..40).all(|data| at(data) < at(40 + data % 2)));
        assert!(!seen.is_sorted());
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..42));
    }
}
