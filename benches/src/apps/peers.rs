//! Peers in C: compiled at their first use, one process for each run.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use crate::error::Error;
use crate::peer::{self, Program};
use crate::print_line::print_line;

/// Program in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    Jacobi,
    GaussSeidel,
    Nbody,
    Matmul,
}

/// Mode of a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mode {
    /// Name as a contender.
    pub(super) name: &'static str,
    /// Argument that selects the mode.
    argument: &'static str,
    /// Smallest problem that the mode is meant for.
    least_size: usize,
    /// `true` if a library has threads of its own, which OpenMP threads that poll for work would
    /// keep from the cores.
    shares_cores: bool,
}

/// Programs by source; `None` if one cannot be built.
#[derive(Debug, Default)]
pub(super) struct Peers(HashMap<Source, Option<Rc<Program>>>);

/// Result of a run.
pub(super) struct Run {
    pub(super) seconds: f64,
    pub(super) checksum: f64,
}

/// Time limit of a run.
const LIMIT: Duration = Duration::from_secs(120);

/// Name of the file that a program reads, in its folder.
const FILE: &str = "input";

impl Source {
    /// Returns the modes for a problem of this size; the first is the plain one.
    pub(super) fn modes(self, size: usize) -> impl Iterator<Item = Mode> {
        let shares_cores = self == Self::Matmul;
        let mode = |name, argument, least_size| Mode { name, argument, least_size, shares_cores };
        let modes = match self {
            Self::Jacobi => [mode("openmp", "plain", 0), mode("tiled", "tiled", 4096)].to_vec(),
            Self::GaussSeidel => [mode("openmp", "wavefront", 0)].to_vec(),
            Self::Nbody => [mode("openmp", "sqrt", 0), mode("rsqrt", "rsqrt", 0)].to_vec(),
            Self::Matmul => [mode("openblas", "blas", 0)].to_vec(),
        };
        modes.into_iter().filter(move |mode| mode.least_size <= size)
    }

    fn compile(self) -> Result<Program, Error> {
        const HEAT: &str = include_str!("../../peers/heat.h");
        let (before, text) = match self {
            Self::Jacobi => (HEAT, include_str!("../../peers/jacobi.c")),
            Self::GaussSeidel => (HEAT, include_str!("../../peers/gauss_seidel.c")),
            Self::Nbody => ("", include_str!("../../peers/nbody.c")),
            Self::Matmul => ("", include_str!("../../peers/matmul.c")),
        };
        let mut options = vec!["-O3", "-march=native", "-fopenmp", "-fno-math-errno"];
        if self == Self::Matmul {
            // The libraries precede the objects that use them, so the linker must keep them.
            options.extend(["-Wl,--no-as-needed", "-lopenblas", "-lm"]);
        }
        Program::compile("gcc", &options, &[before, text].concat())
    }
}

impl Peers {
    /// Returns the program of a source; `None`, reported once, if it cannot be built.
    ///
    /// **Errors**: source rejected by the compiler.
    pub(super) fn of(&mut self, source: Source) -> Result<Option<Rc<Program>>, Error> {
        if let Some(known) = self.0.get(&source) {
            return Ok(known.clone());
        }
        let program = match source.compile() {
            Ok(program) => {
                print_line(format_args!("# {source:?}: {}", peer::version("gcc")?));
                Some(Rc::new(program))
            }
            Err(missing @ Error::NotInstalled { .. }) => {
                print_line(format_args!("# {source:?}: no peer, {missing}"));
                None
            }
            Err(Error::Failed { output, .. }) if output.contains("-lopenblas") => {
                print_line(format_args!("# {source:?}: no peer, OpenBLAS is not installed"));
                None
            }
            Err(error) => return Err(error),
        };
        self.0.insert(source, program.clone());
        Ok(program)
    }
}

/// Writes the input file for the next runs.
///
/// **Errors**: those of the file.
pub(super) fn write_input(program: &Program, numbers: &[f64]) -> Result<(), Error> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    let written = std::fs::write(program.folder().join(FILE), bytes);
    written.map_err(|reason| Error::System { doing: "writing the input of a peer", reason })
}

/// Runs a program on `threads` threads.
///
/// **Errors**: program failed or timed out; unexpected output.
pub(super) fn run(
    program: &Program,
    mode: Mode,
    size: usize,
    steps: usize,
    threads: usize,
) -> Result<Run, Error> {
    let mut command = peer::limited(program.path(), LIMIT);
    command.arg(mode.argument).args([size.to_string(), steps.to_string()]).arg(FILE);
    for variable in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"] {
        command.env(variable, threads.to_string());
    }
    if mode.shares_cores {
        command.env("OMP_WAIT_POLICY", "passive");
    }
    let output = peer::run(command.current_dir(program.folder()))?;
    Ok(Run { seconds: output.value("seconds")?, checksum: output.value("checksum")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_compiles_where_its_compiler_and_libraries_are() {
        let mut peers = Peers::default();
        for source in [Source::Jacobi, Source::GaussSeidel, Source::Nbody, Source::Matmul] {
            peers.of(source).unwrap();
        }
    }

    #[test]
    fn a_tiled_program_is_for_large_problems() {
        let names = |size| Source::Jacobi.modes(size).map(|mode| mode.name).collect::<Vec<_>>();
        assert_eq!(names(4095), ["openmp"]);
        assert_eq!(names(4096), ["openmp", "tiled"]);
    }
}
