//! Where the tasks of a recorded graph are at home.

use std::ops::Range;

/// The worker where each task is at home: those of a step that are declared one after another, which
/// often share data, have the same one. Tasks that wait for each other in a circle count as one, inline
/// ones as none. Those of a step with less than one for each worker are at home wherever they become
/// ready, and so are inline ones.
///
/// `steps` are the numbers of tasks in the steps, `successors` the tasks that wait for one: later ones
/// in the same iteration, others in the next one.
pub(super) fn homes<'a>(
    steps: impl Iterator<Item = usize>,
    is_inline: impl Fn(usize) -> bool,
    successors: impl Fn(usize) -> &'a [u32],
    workers: usize,
) -> Vec<Option<u32>> {
    let mut homes = Vec::new();
    for tasks in steps {
        let first = homes.len();
        let circles = circles(first..first + tasks, &successors);
        let counts = |circle: &Range<usize>| !circle.clone().all(&is_inline);
        let counted = circles.iter().filter(|circle| counts(circle)).count();
        let mut place = 0;
        for circle in circles {
            let is_dealt_out = counted >= workers && counts(&circle);
            let home = is_dealt_out.then(|| (place * workers / counted) as u32);
            place += usize::from(is_dealt_out);
            homes.extend(circle.map(|_| home));
        }
    }
    homes
}

/// A step, cut into circles: each task of one waits for the task before it, and the first for the last
/// of the iteration before. A task that is in none is one.
fn circles<'a>(step: Range<usize>, successors: impl Fn(usize) -> &'a [u32]) -> Vec<Range<usize>> {
    // How far each is followed by tasks that wait for each other one by one.
    let mut chained: Vec<_> = step.clone().collect();
    for (place, task) in step.clone().enumerate().rev().skip(1) {
        if successors(task).contains(&(task as u32 + 1)) {
            chained[place] = chained[place + 1];
        }
    }
    let mut last: Vec<_> = step.clone().collect();
    for task in step.clone() {
        for &first in successors(task) {
            let place = (first as usize).wrapping_sub(step.start);
            if (first as usize) < task && chained.get(place).is_some_and(|end| *end >= task) {
                last[place] = task;
            }
        }
    }
    let mut next = step.start;
    let circle = || {
        let first = next;
        next = last.get(first - step.start)? + 1;
        Some(first..next)
    };
    std::iter::from_fn(circle).collect()
}

#[cfg(all(test, not(talpf_loom), not(talpf_shuttle)))]
mod tests {
    use super::*;

    fn cut(step: Range<usize>, successors: &[&[u32]]) -> Vec<Range<usize>> {
        circles(step, |task| successors[task])
    }

    #[test]
    fn a_circle_ends_with_the_last_task_that_its_first_waits_for() {
        // Two that answer each other, a chain that leads nowhere, and three in a circle.
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
    fn a_step_has_circles_of_its_own() {
        // The second of two steps; the first of them waits for it, too.
        let graph: [&[u32]; 4] = [&[1], &[2], &[3, 0], &[2, 0]];
        assert_eq!(cut(2..4, &graph).first(), Some(&(2..4)));
        assert_eq!(cut(0..2, &graph), [0..1, 1..2]);
        assert!(cut(2..2, &graph).is_empty());
    }

    #[test]
    fn circles_are_dealt_out_in_one_piece_each() {
        let graph: [&[u32]; 6] = [&[1], &[0], &[3], &[2], &[], &[]];
        let homes = |workers| homes([6].into_iter(), |_| false, |task| graph[task], workers);
        assert_eq!(homes(2), [0, 0, 0, 0, 1, 1].map(Some));
        assert_eq!(homes(4), [0, 0, 1, 1, 2, 3].map(Some));
        assert_eq!(homes(5), [None; 6], "four circles for five workers");
    }

    #[test]
    fn inline_tasks_are_not_dealt_out() {
        // A circle with an inline task in it, an inline task on either side of a task, and a task.
        let graph: [&[u32]; 6] = [&[1], &[0], &[], &[], &[], &[]];
        let is_inline = |task: usize| [1, 2, 4].contains(&task);
        let homes = |workers| homes([6].into_iter(), is_inline, |task| graph[task], workers);
        let (none, at) = (None, Some);
        assert_eq!(homes(3), [at(0), at(0), none, at(1), none, at(2)]);
        assert_eq!(homes(4), [none; 6], "three circles for four workers");
    }
}
