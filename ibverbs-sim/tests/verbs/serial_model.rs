//! Random requests over several queue pairs leave the same bytes as arrays changed one by one, on a
//! link with and without faults.

use crate::common::*;
use ibverbs_sim::*;
use proptest::prelude::*;

const LENGTH: usize = 64;
const PAIRS: usize = 3;

#[derive(Clone, Debug)]
enum Act {
    Write { from: Vec<(usize, usize)>, to: usize, notify: bool },
    Inline { bytes: Vec<u8>, to: usize },
    Read { into: Vec<(usize, usize)>, from: usize },
    Send { from: Vec<(usize, usize)>, into: (usize, usize) },
    FetchAdd { word: usize, into: usize, add: u64 },
    CompareSwap { word: usize, into: usize, matches: bool, swap: u64 },
}

fn pieces() -> impl Strategy<Value = Vec<(usize, usize)>> {
    prop::collection::vec((0..56usize, 0..8usize), 0..4)
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (pieces(), 0..32usize, any::<bool>()).prop_map(|(from, to, notify)| Act::Write {
            from,
            to,
            notify
        }),
        (prop::collection::vec(any::<u8>(), 0..32), 0..32usize)
            .prop_map(|(bytes, to)| Act::Inline { bytes, to }),
        // Pieces of one READ must not overlap.
        (0..16usize, 0..9usize, 0..9usize, 0..32usize).prop_map(|(gap, first, second, from)| {
            Act::Read { into: vec![(gap + 32, first), (gap, second)], from }
        }),
        (pieces(), 0..32usize).prop_map(|(from, to)| Act::Send { from, into: (to, 32) }),
        (0..8usize, 0..8usize, any::<u64>()).prop_map(|(word, into, add)| Act::FetchAdd {
            word,
            into,
            add
        }),
        (0..8usize, 0..8usize, any::<bool>(), any::<u64>())
            .prop_map(|(word, into, matches, swap)| Act::CompareSwap { word, into, matches, swap }),
    ]
}

struct Model {
    local: Vec<u8>,
    remote: Vec<u8>,
}

impl Model {
    fn gather(&self, from: &[(usize, usize)]) -> Vec<u8> {
        from.iter().flat_map(|&(at, length)| &self.local[at..at + length]).copied().collect()
    }

    fn word(&self, word: usize) -> u64 {
        u64::from_ne_bytes(self.remote[8 * word..8 * word + 8].try_into().unwrap())
    }

    fn apply(&mut self, act: &Act) {
        match act {
            Act::Write { from, to, .. } => {
                let bytes = self.gather(from);
                self.remote[*to..*to + bytes.len()].copy_from_slice(&bytes);
            }
            Act::Send { from, into } => {
                let bytes = self.gather(from);
                self.remote[into.0..into.0 + bytes.len()].copy_from_slice(&bytes);
            }
            Act::Inline { bytes, to } => {
                self.remote[*to..*to + bytes.len()].copy_from_slice(bytes);
            }
            Act::Read { into, from } => {
                let mut from = *from;
                for &(at, length) in into {
                    self.local[at..at + length].copy_from_slice(&self.remote[from..from + length]);
                    from += length;
                }
            }
            Act::FetchAdd { word, into, add } => {
                let sum = self.word(*word).wrapping_add(*add);
                self.change(*word, *into, sum);
            }
            Act::CompareSwap { word, into, matches, swap } => {
                let value = if *matches { *swap } else { self.word(*word) };
                self.change(*word, *into, value);
            }
        }
    }

    fn change(&mut self, word: usize, into: usize, value: u64) {
        let original = self.word(word).to_ne_bytes();
        self.local[8 * into..8 * into + 8].copy_from_slice(&original);
        self.remote[8 * word..8 * word + 8].copy_from_slice(&value.to_ne_bytes());
    }
}

/// Posts `act` on one pair, whose model has not applied it yet.
fn post(act: &Act, model: &Model, a: &End, b: &End, local: &Buffer, remote: &Buffer) {
    let list = |pieces: &[(usize, usize)]| -> Vec<_> {
        pieces.iter().map(|&(at, length)| local.region.slice(at, length as u32)).collect()
    };
    let at = |offset| remote.region.at(offset);
    let (operation, list) = match act {
        Act::Write { from, to, notify: false } => {
            (Operation::Write { remote: at(*to) }, list(from))
        }
        Act::Write { from, to, notify: true } => {
            b.receives(0..1);
            (Operation::WriteWithImmediate { remote: at(*to), immediate: 1 }, list(from))
        }
        Act::Inline { bytes, to } => {
            let operation = Operation::Write { remote: at(*to) };
            return a.post(&[request(0, operation, Payload::Inline(bytes))]);
        }
        Act::Read { into, from } => (Operation::Read { remote: at(*from) }, list(into)),
        Act::Send { from, into } => {
            b.receive(0, &[remote.region.slice(into.0, into.1 as u32)]);
            (Operation::Send, list(from))
        }
        Act::FetchAdd { word, into, add } => {
            (Operation::FetchAdd { remote: at(8 * word), add: *add }, list(&[(8 * into, 8)]))
        }
        Act::CompareSwap { word, into, matches, swap } => {
            let current = model.word(*word);
            let compare = if *matches { current } else { !current };
            let operation = Operation::CompareSwap { remote: at(8 * word), compare, swap: *swap };
            (operation, list(&[(8 * into, 8)]))
        }
    };
    a.post(&[request(0, operation, Payload::Gather(&list))]);
}

fn run(device: &Devices, acts: &[(usize, Act)]) {
    let connection = Connection { timeout_ns: 100, retry_count: 7, ..Connection::default() };
    let mut pairs: Vec<_> = (0..PAIRS)
        .map(|which| {
            let (a, b) = pair_on(device, &connection);
            let (local, remote) = (a.buffer(LENGTH), b.buffer(LENGTH));
            let bytes: Vec<_> = (0..LENGTH).map(|at| (at + 64 * which) as u8).collect();
            local.fill(&bytes);
            let model = Model { local: bytes, remote: vec![0; LENGTH] };
            (a, b, local, remote, model)
        })
        .collect();
    for (which, act) in acts {
        let (a, b, local, remote, model) = &mut pairs[*which];
        post(act, model, a, b, local, remote);
        model.apply(act);
    }
    for (which, (a, b, local, remote, model)) in pairs.iter().enumerate() {
        while let Some(deadline) = a.context.next_deadline_ns() {
            a.advance(deadline);
        }
        let sent = a.sent();
        assert!(sent.iter().all(|sent| sent.status == CompletionStatus::Success), "{sent:?}");
        assert_eq!(sent.len(), acts.iter().filter(|(other, _)| *other == which).count());
        assert!(b.received().iter().all(|got| got.status == CompletionStatus::Success));
        assert_eq!(local.bytes(), model.local);
        assert_eq!(remote.bytes(), model.remote);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_perfect_link_is_serial(acts in prop::collection::vec((0..PAIRS, act()), 0..60)) {
        run(&device(), &acts);
    }

    #[test]
    fn a_bad_link_changes_nothing(
        acts in prop::collection::vec((0..PAIRS, act()), 0..60),
        seed: u64,
    ) {
        let plan = FaultPlan {
            seed,
            drop_request_ppm: 60_000,
            drop_response_ppm: 60_000,
            duplicate_ppm: 200_000,
            delay_ppm: 200_000,
            max_delay_ns: 300,
            reorder_ppm: 200_000,
        };
        run(&faulty(plan), &acts);
    }
}
