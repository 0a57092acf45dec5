//! Programs on ranks that MPI starts, one in each process.
//!
//! Every case and number of ranks is one test, which executes this binary again under `mpirun`
//! and gives it five minutes. The test process itself never initialises MPI: Open MPI would take
//! what it starts for children of it.

mod collectives;
mod communicators;
mod ends;
mod example;
mod harness;
mod launcher;
mod library;
mod matching;
mod messages;
mod thread_levels;
mod windows;
mod wires;

use harness::Case;

fn main() -> std::process::ExitCode {
    let cases: &[Case] = &[
        messages::CASES,
        matching::CASES,
        collectives::CASES,
        communicators::CASES,
        windows::CASES,
        wires::CASES,
        library::CASES,
        ends::CASES,
        thread_levels::CASES,
        example::CASES,
    ]
    .concat();
    harness::main(cases)
}
