//! The least that the rail on libfabric can cost: a program in C on the same provider.

use std::time::Duration;

use ibverbs_sim::OfiProviders;

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
    /// Rate of writes of 1 MiB.
    pub(super) stream_gbs: f64,
}

impl Libfabric {
    /// Compiles the program, where the headers of libfabric are installed and a provider is used; says so
    /// otherwise.
    pub(super) fn find(core: usize) -> Option<Self> {
        let provider = OfiProviders::find().ok()?.best()?.name.clone();
        let options = ["-O2", "-Wl,--no-as-needed", "-lfabric"];
        match Program::compile("gcc", &options, include_str!("../../peers/libfabric.c")) {
            Ok(program) => Some(Self { program, provider, core }),
            Err(error) => {
                print_line(format_args!("links: without the bare libfabric: {error}"));
                None
            }
        }
    }

    /// Runs the program.
    pub(super) fn run(&self, rounds: usize, writes: usize) -> Result<Figures, Error> {
        let mut command = limited(self.program.path(), LIMIT);
        let numbers = [rounds, writes, self.core].map(|number| number.to_string());
        let output = run(command.arg(&self.provider).args(numbers))?;
        let (one_way_ns, stream_gbs) = (output.value("one_way_ns")?, output.value("stream_gbs")?);
        Ok(Figures { one_way_ns, stream_gbs })
    }
}
