//! Start of the processes of a team as threads, or of one that joins a team.

use std::sync::{Arc, OnceLock};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::process::Process;
use crate::team::Team;

/// Program of a process.
pub(crate) type Program<'p> = &'p (dyn Fn(&Context) + Sync);

/// Runs a program on `processes` threads, of which the calling one is process 0, and shares `processors` out among
/// them.
///
/// # Errors
///
/// [`Error::OutOfMemory`] if the threads cannot be started; then nothing has run. [`Error::Fatal`] if the
/// processes did not end in the same superstep, or some of them failed.
pub(crate) fn run(processes: usize, processors: u32, program: Program<'_>) -> Result<()> {
    let team = Team::new(processes)?;
    let share = |pid: usize| {
        let (each, rest) = (processors as usize / processes, processors as usize % processes);
        ((each + usize::from(pid < rest)) as u32).max(1)
    };
    let own = Process::new(Arc::clone(&team), 0, share(0))?;
    // Set once all threads could be started, or one could not.
    let go = OnceLock::<bool>::new();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for pid in 1..processes {
            let process = Process::new(Arc::clone(&team), pid, share(pid));
            let go = &go;
            let run = move |process| go.wait().then(|| run_process(process, program));
            let thread = process.and_then(|process| {
                let builder = std::thread::Builder::new().name(format!("lpf {pid}"));
                let builder = builder.stack_size(crate::stack::size());
                builder.spawn_scoped(scope, move || run(process)).map_err(|_| Error::OutOfMemory)
            });
            match thread {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    let _ = go.set(false);
                    return Err(error);
                }
            }
        }
        let _ = go.set(true);
        let mut result = run_process(own, program);
        for thread in threads {
            let ended = thread.join().ok().flatten().unwrap_or(Err(Error::Fatal));
            result = result.and(ended);
        }
        result
    })
}

/// Runs the program of a process, and waits until those of all have ended.
///
/// # Errors
///
/// [`Error::Fatal`] if they did not end in the same superstep, or some failed.
pub(crate) fn run_process(process: Process, program: Program<'_>) -> Result<()> {
    let context = Context::new(process);
    program(&context);
    context.into_process().leave()
}
