//! The example that takes MPI.

#[path = "../../examples/mpi_window.rs"]
mod mpi_window;

use crate::harness::{ALL, Case};

pub(crate) const CASES: &[Case] = &[Case::new("example::mpi_window", ALL, || {
    mpi_window::main().unwrap_or_else(|error| panic!("{error}"));
})];
