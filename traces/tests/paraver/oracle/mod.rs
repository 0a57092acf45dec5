//! A trace shows what was recorded: what an oracle that knows each nanosecond by itself expects.
//!
//! Records of random runs are painted over time, outer slices first, and the lines of the trace as well.

mod expected;
mod program;
mod shown;

use proptest::prelude::*;

use self::expected::{expected, owners};
use self::program::{Step, run};
use self::shown::shown;
use crate::support::{Trace, info};

/// Largest numbers of ranks and of workers.
const MOST: u32 = 3;

fn step() -> impl Strategy<Value = Step> {
    let numbers = (0..MOST, 0..4_u64, 0..40_u8, any::<u32>(), any::<u32>());
    numbers.prop_map(|(worker, passed, kind, a, b)| Step { worker, passed, kind, a, b })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_trace_shows_what_was_recorded(
        ranks in 1..=MOST,
        workers in 1..=MOST,
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let run = run(ranks, workers, &steps);
        let trace = Trace::of(&run.recorder, &info(ranks, workers, run.end_ns));
        let shown = shown(&trace.prv, &run, &owners(&run));
        let expected = expected(&run);
        prop_assert_eq!(&shown.states, &expected.states, "{}", trace.prv);
        prop_assert_eq!(&shown.levels, &expected.levels, "{}", trace.prv);
        prop_assert_eq!(&shown.moments, &expected.moments, "{}", trace.prv);
        prop_assert_eq!(&shown.messages, &expected.messages, "{}", trace.prv);
    }
}
