//! Levels of thread support: an MPI that not all threads may call is refused.

use mpi::Threading;
use tampi_shim::mpi::Library;

use crate::harness::Case;

pub(crate) const CASES: &[Case] =
    &[Case::new("an_mpi_for_one_thread_is_refused", &[1, 2], for_one_thread)];

/// The program initialises MPI itself, and goes on with it.
fn for_one_thread() {
    let (universe, provided) =
        mpi::initialize_with_threading(Threading::Funneled).expect("initialised once");
    assert_eq!(provided, Threading::Funneled, "an MPI that provides more than it is asked for");
    let text = Library::initialize().expect_err("too little").to_string();
    for part in ["provides MPI_THREAD_FUNNELED", "MPI_THREAD_MULTIPLE", "MPI_Init_thread"] {
        assert!(text.contains(part), "{text}");
    }
    drop(universe);
}
