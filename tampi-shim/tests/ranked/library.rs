//! Bytes that processes exchange before they run a program.

use tampi_shim::mpi::Library;

use crate::harness::{ALL, Case};

pub(crate) const CASES: &[Case] =
    &[Case::new("every_process_gets_the_bytes_of_all", ALL, gathered)];

fn gathered() {
    let library = Library::initialize().unwrap();
    // None, less than a word, and more than some; of other lengths in other processes.
    for most in [0, 1, 7, 8, 9, 1000] {
        let of = |process: u32| vec![process as u8 + 1; most * (process as usize % 3) / 2];
        let expected: Vec<_> = (0..library.size()).map(of).collect();
        assert_eq!(library.all_gather(&of(library.rank())), Ok(expected), "{most}");
    }
}
