//! Check that the states of each thread follow one another without overlap or gap.

use super::header::Header;
use super::report::Log;
use super::rule::Rule;

/// End of the last state of each thread.
#[derive(Debug)]
pub(super) struct States {
    reached: Vec<u64>,
    any: bool,
}

impl States {
    pub(super) fn new(threads: usize) -> Self {
        Self { reached: vec![0; threads], any: false }
    }

    /// Adds the state of a thread from `begin` to `end`.
    pub(super) fn add(
        &mut self,
        thread: usize,
        (begin, end): (u64, u64),
        line: u64,
        log: &mut Log<'_>,
    ) {
        self.any = true;
        if end < begin {
            let text = format_args!("the state ends at {end}, before it begins at {begin}");
            log.add(Rule::StateReversed, line, text);
            return;
        }
        let reached = &mut self.reached[thread];
        if begin < *reached {
            let text = format_args!(
                "the state begins at {begin}, before {reached} where the last one of its thread \
                 ends"
            );
            log.add(Rule::StateOverlap, line, text);
        } else if begin > *reached {
            let text = format_args!("the thread has no state from {reached} to {begin}");
            log.add(Rule::StateGap, line, text);
        }
        *reached = end.max(*reached);
    }

    /// Reports threads that are `used` but have no state up to the end of the trace, at its last
    /// line, if the trace has states.
    pub(super) fn finish(&self, header: &Header, used: &[bool], line: u64, log: &mut Log<'_>) {
        if !self.any {
            return;
        }
        let Header { duration, objects, .. } = header;
        for (thread, (reached, used)) in self.reached.iter().zip(used).enumerate() {
            if *used && reached < duration {
                let name = objects.name(thread);
                let text = format_args!(
                    "thread {name} has no state from {reached} to the end, {duration}"
                );
                log.add(Rule::StateGap, line, text);
            }
        }
    }
}
