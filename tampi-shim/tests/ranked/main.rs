//! Programs on ranks that MPI starts, one in each process.
//!
//! Every case and number of ranks is one test, which executes this binary again under `mpirun`
//! and gives it three minutes. The test process itself never initialises MPI: Open MPI would take what
//! it starts for children of it.
//!
//! `MPIRUN` names the launcher; by default it is the one beside the compiler of `MPICC`.

mod collectives;
mod communicators;
mod ends;
mod harness;
mod matching;
mod messages;
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
        ends::CASES,
    ]
    .concat();
    harness::main(cases)
}
