//! The preferred workers of the tasks of a recorded graph.
//!
//! | figure | cost without the policy | noise |
//! |---|---|---|
//! | `runtime.stencil_replay` | +38 % | 0 % |
//! | `metg.stencil_1d_periodic_32.replay` | +12 % | +6 % |

use std::ops::Range;

use super::cycles::cycles;

/// Returns the preferred worker of each task. Tasks of a step that are declared one after another,
/// which often share data, have the same one. Tasks that wait for each other in a cycle count as
/// one, inline ones as none. If a step has fewer than one for each worker its tasks have no
/// preferred worker, and neither have inline ones.
///
/// `steps` are the numbers of tasks in the steps, `successors` the tasks that wait for one: later
/// ones in the same iteration, others in the next one. `workers` are the numbers of the workers that may run the
/// tasks.
pub(crate) fn preferred_workers<'a>(
    steps: impl Iterator<Item = usize>,
    is_inline: impl Fn(usize) -> bool,
    successors: impl Fn(usize) -> &'a [u32],
    workers: Range<usize>,
) -> Vec<Option<u32>> {
    let mut preferred = Vec::new();
    for tasks in steps {
        let first = preferred.len();
        let cycles = cycles(first..first + tasks, &successors);
        let counts = |cycle: &Range<usize>| !cycle.clone().all(&is_inline);
        let counted = cycles.iter().filter(|cycle| counts(cycle)).count();
        let mut position = 0;
        for cycle in cycles {
            let is_assigned = counted >= workers.len() && counts(&cycle);
            let worker =
                is_assigned.then(|| (workers.start + position * workers.len() / counted) as u32);
            position += usize::from(is_assigned);
            preferred.extend(cycle.map(|_| worker));
        }
    }
    preferred
}

#[cfg(all(test, not(talpf_loom), not(talpf_shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_is_assigned_to_one_worker() {
        let graph: [&[u32]; 6] = [&[1], &[0], &[3], &[2], &[], &[]];
        let preferred =
            |workers| preferred_workers([6].into_iter(), |_| false, |task| graph[task], 0..workers);
        assert_eq!(preferred(2), [0, 0, 0, 0, 1, 1].map(Some));
        assert_eq!(preferred(4), [0, 0, 1, 1, 2, 3].map(Some));
        assert_eq!(preferred(5), [None; 6], "four cycles for five workers");
        let of_set = preferred_workers([6].into_iter(), |_| false, |task| graph[task], 3..5);
        assert_eq!(of_set, [3, 3, 3, 3, 4, 4].map(Some), "the second of two sets");
    }

    #[test]
    fn inline_tasks_are_not_assigned() {
        // A cycle with an inline task in it, an inline task on either side of a task, and a task.
        let graph: [&[u32]; 6] = [&[1], &[0], &[], &[], &[], &[]];
        let is_inline = |task: usize| [1, 2, 4].contains(&task);
        let preferred =
            |workers| preferred_workers([6].into_iter(), is_inline, |task| graph[task], 0..workers);
        let (none, at) = (None, Some);
        assert_eq!(preferred(3), [at(0), at(0), none, at(1), none, at(2)]);
        assert_eq!(preferred(4), [none; 6], "three cycles for four workers");
    }
}
