//! The tasks of a replayed step that wait for each other in a cycle: they never run at the same
//! time, so one worker is preferred by all of them.
//!
//! | figure | cost without the policy | noise |
//! |---|---|---|
//! | `two_sided.replayed_8B` | +33 % | -1 % |

use std::ops::Range;

/// Cuts a step into cycles: each task of a cycle waits for the task before it, and the first for
/// the last of the iteration before. A task in no cycle is one by itself.
pub(super) fn cycles<'a>(
    step: Range<usize>,
    successors: impl Fn(usize) -> &'a [u32],
) -> Vec<Range<usize>> {
    // For each task, the end of the chain of tasks after it that wait for each other one by one.
    let mut chained: Vec<_> = step.clone().collect();
    for (position, task) in step.clone().enumerate().rev().skip(1) {
        if successors(task).contains(&(task as u32 + 1)) {
            chained[position] = chained[position + 1];
        }
    }
    let mut last: Vec<_> = step.clone().collect();
    for task in step.clone() {
        for &first in successors(task) {
            let position = (first as usize).wrapping_sub(step.start);
            if (first as usize) < task && chained.get(position).is_some_and(|end| *end >= task) {
                last[position] = task;
            }
        }
    }
    let mut next = step.start;
    let cycle = || {
        let first = next;
        next = last.get(first - step.start)? + 1;
        Some(first..next)
    };
    std::iter::from_fn(cycle).collect()
}

#[cfg(all(test, not(talpf_loom), not(talpf_shuttle)))]
mod tests {
    use super::*;

    fn cut(step: Range<usize>, successors: &[&[u32]]) -> Vec<Range<usize>> {
        cycles(step, |task| successors[task])
    }

    #[test]
    fn a_cycle_ends_with_the_last_task_that_its_first_waits_for() {
        // A cycle of two, a chain that leads nowhere, and a cycle of three.
        let graph: [&[u32]; 8] = [&[1], &[0], &[3], &[4], &[], &[6], &[7], &[5]];
        assert_eq!(cut(0..8, &graph), [0..2, 2..3, 3..4, 4..5, 5..8]);
        // A line of neighbours: the first two, and then the next two, wait for each other.
        let graph: [&[u32]; 5] = [&[1], &[0, 2], &[1, 3], &[2, 4], &[3]];
        assert_eq!(cut(0..5, &graph), [0..2, 2..4, 4..5]);
        // The chain is interrupted before the task that leads back.
        let graph: [&[u32]; 3] = [&[1], &[], &[0]];
        assert_eq!(cut(0..3, &graph), [0..1, 1..2, 2..3]);
    }

    #[test]
    fn a_step_has_cycles_of_its_own() {
        // The second of two steps; the first of them waits for it, too.
        let graph: [&[u32]; 4] = [&[1], &[2], &[3, 0], &[2, 0]];
        assert_eq!(cut(2..4, &graph).first(), Some(&(2..4)));
        assert_eq!(cut(0..2, &graph), [0..1, 1..2]);
        assert!(cut(2..2, &graph).is_empty());
    }
}
