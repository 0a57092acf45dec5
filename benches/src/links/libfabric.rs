//! The least that the rail on libfabric can cost: a program in C on the same provider.

use std::time::Duration;

use super::LONG;
use crate::error::Error;
use crate::peer::{Program, limited, run};
use crate::print_line::print_line;

/// Time limit of a run.
const LIMIT: Duration = Duration::from_secs(60);

/// The program, compiled.
pub(super) struct Libfabric {
    program: Program,
    provider: String,
    /// Core of one of its processes.
    core: usize,
}

/// Figures of a run.
pub(super) struct Figures {
    /// Time of a message of 8 bytes.
    pub(super) one_way_ns: f64,
    /// Rates of writes of each of the [`LONG`] sizes.
    pub(super) writes_gbs: [f64; LONG.len()],
    /// Rates of reads of the same sizes.
    pub(super) reads_gbs: [f64; LONG.len()],
}

impl Libfabric {
    /// Compiles the program for a provider, where the headers of libfabric are installed; says so otherwise.
    pub(super) fn find(provider: String, core: usize) -> Option<Self> {
        let options = ["-O2", "-Wl,--no-as-needed", "-lfabric"];
        match Program::compile("gcc", &options, include_str!("../../peers/libfabric.c")) {
            Ok(program) => Some(Self { program, provider, core }),
            Err(error) => {
                print_line(format_args!("links: without the bare libfabric: {error}"));
                None
            }
        }
    }

    /// Runs the program, with so many messages, and operations of each of the [`LONG`] sizes.
    pub(super) fn run(&self, rounds: usize, counts: [usize; LONG.len()]) -> Result<Figures, Error> {
        let mut figures = Figures { one_way_ns: 0.0, writes_gbs: [0.0; 3], reads_gbs: [0.0; 3] };
        for (nth, (size, count)) in LONG.into_iter().zip(counts).enumerate() {
            let mut command = limited(self.program.path(), LIMIT);
            let numbers = [rounds, count, self.core, size].map(|number| number.to_string());
            let output = run(command.arg(&self.provider).args(numbers))?;
            figures.one_way_ns = output.value("one_way_ns")?;
            figures.writes_gbs[nth] = output.value("writes_gbs")?;
            figures.reads_gbs[nth] = output.value("reads_gbs")?;
        }
        Ok(figures)
    }
}
