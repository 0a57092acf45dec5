//! Any sequence of requests leaves the same memory and completions between processes as in one
//! process.

use proptest::prelude::*;

use crate::connected_pair::ConnectedPair;
use ibverbs_sim::*;

#[derive(Clone, Debug)]
enum Step {
    Receive { by_a: bool, length: u32 },
    Post { by_a: bool, opcode: u8, local: u32, remote: usize, length: u32, signalled: bool },
    Settle,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let receive =
        (any::<bool>(), 0u32..24).prop_map(|(by_a, length)| Step::Receive { by_a, length });
    let post = (any::<bool>(), 0..7u8, 0u32..5, 0usize..6, 0u32..20, any::<bool>()).prop_map(
        |(by_a, opcode, local, remote, length, signalled)| {
            let (local, remote) = (local * 8, remote * 8);
            Step::Post { by_a, opcode, local, remote, length, signalled }
        },
    );
    let step = prop_oneof![2 => receive, 4 => post, 1 => Just(Step::Settle)];
    proptest::collection::vec(step, 1..40)
}

/// Observations of one end: memory, completions of sends and of receives, state.
type Seen = (Vec<u8>, Vec<WorkCompletion>, Vec<WorkCompletion>, QueuePairState);

fn run(pair: &ConnectedPair, steps: &[Step]) -> [Seen; 2] {
    let memory = [pair.a.buffer(48), pair.b.buffer(48)];
    let ends = [&pair.a, &pair.b];
    memory[0].fill(&std::array::from_fn::<u8, 48, _>(|at| at as u8 + 1));
    memory[1].fill(&std::array::from_fn::<u8, 48, _>(|at| at as u8 + 101));
    let mut seen: [(Vec<_>, Vec<_>); 2] = Default::default();
    for (wr_id, step) in steps.iter().enumerate() {
        let wr_id = wr_id as u64;
        match *step {
            Step::Receive { by_a, length } => {
                let me = usize::from(!by_a);
                ends[me].receive(wr_id, &[memory[me].region.slice(0, length)]);
            }
            Step::Post { by_a, opcode, local, remote, length, signalled } => {
                let me = usize::from(!by_a);
                let remote = memory[1 - me].region.at(remote);
                let operation = match opcode {
                    0 => Operation::Send,
                    1 => Operation::SendWithImmediate { immediate: length },
                    2 => Operation::Write { remote },
                    3 => Operation::WriteWithImmediate { remote, immediate: length },
                    4 => Operation::Read { remote },
                    5 => Operation::FetchAdd { remote, add: 5 },
                    _ => Operation::CompareSwap { remote, compare: 0, swap: 9 },
                };
                let length = if opcode > 4 { 8 } else { length };
                let pieces = [memory[me].region.slice(local as usize, length)];
                let payload = Payload::Gather(&pieces);
                let flags = if signalled { SendFlags::SIGNALLED } else { SendFlags::NONE };
                // Otherwise a request may be sent before the data that it sends has come.
                let flags = flags | SendFlags::FENCE;
                ends[me].post(&[SendWorkRequest { wr_id, operation, payload, flags }]);
                // One end at a time: otherwise the two race.
                pair.settle();
            }
            Step::Settle => pair.settle(),
        }
        pair.settle();
        for (seen, end) in seen.iter_mut().zip(ends) {
            seen.0.extend(end.sent());
            seen.1.extend(end.received());
        }
    }
    let [first, second] = seen;
    [(first, 0), (second, 1)].map(|((sent, received), at)| {
        let anonymous = |completion: WorkCompletion| WorkCompletion {
            queue_pair: QueuePairNumber::default(),
            source: QueuePairNumber::default(),
            ..completion
        };
        let sent = sent.into_iter().map(anonymous).collect();
        let received = received.into_iter().map(anonymous).collect();
        (memory[at].bytes(), sent, received, ends[at].queue_pair.state())
    })
}

proptest! {
    #[test]
    fn a_wire_changes_nothing(steps in steps()) {
        let here = run(&ConnectedPair::in_one_process(&Connection::default()), &steps);
        let apart = run(&ConnectedPair::new(), &steps);
        prop_assert_eq!(here, apart);
    }
}
