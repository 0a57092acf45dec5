//! Heat diffusion on a rectangle with the Jacobi method: each step replaces every inner cell by
//! the mean of its four neighbours in the matrix of the step before.
//!
//! [`run`] executes one [`Variant`] of a [`Problem`]. Every variant computes with the one
//! [`kernel`] and gives bitwise the result of [`serial`], so that two of them can be compared in
//! time alone.

pub mod fork_join;
pub mod kernel;
mod machine;
mod observer;
mod problem;
mod progress;
pub mod serial;
mod solution;
pub mod talpf;
mod variant;

pub use machine::Machine;
pub use observer::Observer;
pub use problem::Problem;
pub use progress::Progress;
pub use solution::Solution;
pub use variant::{Variant, run};
