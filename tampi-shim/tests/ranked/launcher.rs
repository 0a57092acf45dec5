//! Programs under `mpirun`, never for ever. The tests of the applications use it too.
//!
//! `MPIRUN` names the launcher; by default it is the one beside the compiler of `MPICC`.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Seconds that no program takes on a busy machine. What is still there then is ended.
const LIMIT: &str = "300";

/// Places of programs, of which each has one. The ranks of most MPIs want the cores for themselves; those
/// of Open MPI yield them, and its launcher waits most of the time.
static PLACES: [Mutex<()>; 3] = [const { Mutex::new(()) }; 3];
static NEXT_PLACE: AtomicUsize = AtomicUsize::new(0);

/// Runs `program` on `ranks` ranks, with the arguments and variables that `add` gives it.
pub(crate) fn run(
    ranks: usize,
    program: impl AsRef<Path>,
    add: impl FnOnce(&mut Command) -> &mut Command,
) -> io::Result<Output> {
    let launcher = mpirun();
    let places = if launcher.ends_with("openmpi") { PLACES.len() } else { 1 };
    let place = &PLACES[NEXT_PLACE.fetch_add(1, Ordering::Relaxed) % places];
    let _place = place.lock().unwrap_or_else(PoisonError::into_inner);
    // Not pipes: what a launcher leaves behind that was killed would keep them open.
    let (mut text, mut errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
    // In a folder that they share, a launcher of Open MPI that ends removes what another one that starts has found there.
    let sessions = tempfile::tempdir()?;
    let mut command = Command::new("timeout");
    command.args(["--kill-after=10", LIMIT, &launcher, "-n", &ranks.to_string()]);
    command.arg(program.as_ref());
    let status = add(&mut command)
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_hwloc_base_binding_policy", "none")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        .env("OMPI_MCA_orte_tmpdir_base", sessions.path())
        .stdin(Stdio::null())
        .stdout(text.try_clone()?)
        .stderr(errors.try_clone()?)
        .status()?;
    Ok(Output { status, stdout: all_of(&mut text)?, stderr: all_of(&mut errors)? })
}

fn all_of(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn mpirun() -> String {
    std::env::var("MPIRUN").unwrap_or_else(|_| {
        option_env!("MPICC").map_or("mpirun".to_owned(), |mpicc| mpicc.replace("mpicc", "mpirun"))
    })
}

/// Formats the output of a program, for a test that has failed.
pub(crate) fn said(output: &Output) -> String {
    let (text, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let ended = match output.status.code() {
        Some(124) => format!("not ended after {LIMIT} s"),
        _ => output.status.to_string(),
    };
    format!("{ended}\n{text}{errors}")
}
