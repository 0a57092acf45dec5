//! Help of options that applications share, with the defaults of each.

use clap::Arg;

/// Name of an option, and its help.
type Help = (&'static str, &'static str);

/// Help of the options of one application, for a run or for a comparison, whose runs are shorter.
pub(super) type Helps = &'static [Help];

const RANKS_2: Help = ("ranks", "Ranks that share the work [default: 2, or 1 for a tiny problem]");
const BLOCK_OF_JACOBI: Help = (
    "block",
    "Rows and columns of a block; a task computes as many blocks side by side as make 4096 columns \
     [default: from the caches, see `talpf info`]",
);
const BLOCK_OF_GAUSS_SEIDEL: Help = (
    "block",
    "Rows and columns of a block; a task computes at least two blocks side by side, and as many as \
     make 256 columns [default: 128 to 1024, four blocks one above the other per core; in a small \
     matrix two, of at least 16 rows]",
);
const BLOCK_OF_MATMUL: Help = (
    "block",
    "Rows of a block, the unit of work of tasks, across a whole matrix [default: two blocks per \
     core, of 64 to 256]",
);
const BLOCK_OF_MATMUL_G: Help = (
    "block",
    "Rows of a block, the unit of work of tasks, across the tile of a rank [default: two blocks per \
     core, of 64 to 256]",
);

pub(super) const JACOBI: Helps = &[
    (
        "ranks",
        "Ranks that share the work [default: 2, or 1 for a tiny problem, or those of --grid]",
    ),
    ("steps", "Steps to compute [default: 1000]"),
    BLOCK_OF_JACOBI,
];
pub(super) const GAUSS_SEIDEL: Helps =
    &[RANKS_2, ("steps", "Steps to compute [default: 500]"), BLOCK_OF_GAUSS_SEIDEL];
pub(super) const NBODY: Helps = &[RANKS_2];
pub(super) const MATMUL: Helps = &[RANKS_2, BLOCK_OF_MATMUL];
pub(super) const MATMUL_G: Helps = &[
    ("ranks", "Ranks that share the work, a square number [default: 4, or 1 for a tiny problem]"),
    BLOCK_OF_MATMUL_G,
];
pub(super) const HISTOGRAM: Helps = &[RANKS_2];
pub(super) const KMEANS: Helps = &[RANKS_2];
pub(super) const MANDELBROT: Helps = &[RANKS_2];

const RANKS_TO_8: Help = ("ranks", "Numbers of ranks, separated by commas [default: 1,2,4,8]");

pub(super) const COMPARED_JACOBI: Helps = &[
    ("ranks", "Numbers of ranks, separated by commas [default: 1,2,4,8, or those of --grid]"),
    ("steps", "Steps to compute [default: 200]"),
    BLOCK_OF_JACOBI,
];
pub(super) const COMPARED_GAUSS_SEIDEL: Helps =
    &[RANKS_TO_8, ("steps", "Steps to compute [default: 100]"), BLOCK_OF_GAUSS_SEIDEL];
pub(super) const COMPARED_NBODY: Helps = &[RANKS_TO_8];
pub(super) const COMPARED_MATMUL: Helps = &[RANKS_TO_8, BLOCK_OF_MATMUL];
pub(super) const COMPARED_MATMUL_G: Helps = &[
    ("ranks", "Square numbers of ranks, separated by commas [default: 1,4,9,16]"),
    BLOCK_OF_MATMUL_G,
];
pub(super) const COMPARED_HISTOGRAM: Helps = &[RANKS_TO_8];
pub(super) const COMPARED_KMEANS: Helps = &[RANKS_TO_8];
pub(super) const COMPARED_MANDELBROT: Helps = &[RANKS_TO_8];

/// Returns a change that gives options the help of one application.
pub(super) fn with_help(helps: Helps) -> impl FnMut(Arg) -> Arg {
    move |option| match helps.iter().find(|(name, _)| option.get_id() == name) {
        Some((_, help)) => option.help(*help),
        None => option,
    }
}

#[cfg(test)]
mod tests {
    use super::super::STEPS;
    use super::*;

    #[test]
    fn the_steps_are_those_that_run_without_the_option() {
        for (helps, steps) in [
            (JACOBI, STEPS),
            (GAUSS_SEIDEL, STEPS / 2),
            (COMPARED_JACOBI, STEPS / 5),
            (COMPARED_GAUSS_SEIDEL, STEPS / 10),
        ] {
            let of_steps = helps.iter().find(|(name, _)| *name == "steps");
            assert!(of_steps.is_some_and(|(_, help)| help.ends_with(&format!("{steps}]"))));
        }
    }
}
