//! The bootstrap of processes that a launcher with PMIx has started: `mpirun` of Open MPI, `prterun`, or `srun`
//! of SLURM with `--mpi=pmix`. Nothing of MPI or PMIx is linked.
//!
//! The launcher keeps the values. A protocol by which processes reach it is not specified, but a library of
//! functions in C: it is opened at run time, and only in a process that such a launcher has started.
//!
//! - `abi`: records and constants of the library, and `library`: its functions.
//! - `session`: the thread that calls them, which bounds the time that they take.
//! - `launch`: the environment, and the number of processes.

mod abi;
mod launch;
mod library;
mod session;

use std::{ffi::CString, net::IpAddr, time::Duration};

pub use self::launch::PmixLaunch;
use self::{
    abi::Process,
    library::{Cause, Failure, Library},
};
use super::{Bootstrap, BootstrapError, machine, message, settings};

/// Most bytes of a value.
const LONGEST_VALUE: usize = message::MAX_REQUEST;
/// Beginning of all keys.
const PREFIX: &str = "talpf-";

/// Bootstrap of a process that a launcher with PMIx has started.
#[derive(Debug)]
pub struct PmixBootstrap {
    launch: PmixLaunch,
}

impl PmixBootstrap {
    /// Joins the other processes, which must all have the same settings.
    ///
    /// **Errors**: [`BootstrapError::Pmix`]; a process that does not come, or has other settings.
    pub fn join(launch: PmixLaunch, settings: &[(&str, &str)]) -> Result<Self, BootstrapError> {
        let mut all = Self { launch };
        settings::compare(&mut all, settings)?;
        Ok(all)
    }

    fn failed(&self, failure: Failure) -> BootstrapError {
        let reason = failure.to_string();
        BootstrapError::Pmix { process: self.launch.process, reason }
    }
}

impl Bootstrap for PmixBootstrap {
    fn process(&self) -> u32 {
        self.launch.process
    }

    fn processes(&self) -> u32 {
        self.launch.processes
    }

    fn address(&self) -> IpAddr {
        machine::address()
    }

    fn timeout(&self) -> Duration {
        self.launch.session.timeout()
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), BootstrapError> {
        let (Some(name), ..=LONGEST_VALUE) = (name_of(key), value.len()) else {
            let (key, bytes, limit) = (key.to_owned(), value.len(), LONGEST_VALUE);
            return Err(BootstrapError::Put { key, bytes, limit });
        };
        let value = value.to_vec();
        let put = self.launch.session.call("PMIx_Put", move |library| library.put(&name, &value));
        put.map_err(|failure| self.failed(failure))
    }

    fn fence(&mut self) -> Result<(), BootstrapError> {
        let timeout = self.timeout();
        match self.launch.session.call("PMIx_Fence", move |library| library.fence(timeout)) {
            Err(Failure { cause: Cause::TimedOut, .. }) => {
                Err(BootstrapError::Fence { processes: self.launch.processes })
            }
            outcome => outcome.map_err(|failure| self.failed(failure)),
        }
    }

    fn get(&mut self, process: u32, key: &str) -> Result<Vec<u8>, BootstrapError> {
        let not_put = || BootstrapError::NotPut { process, key: key.to_owned() };
        let name = name_of(key).ok_or_else(not_put)?;
        let (of, timeout) = (Process::new(&self.launch.job, process), self.timeout());
        let bytes = move |library: &Library| library.bytes(&of, &name, timeout);
        match self.launch.session.call("PMIx_Get", bytes) {
            Err(Failure { cause: Cause::NoSuchValue, .. }) => Err(not_put()),
            outcome => outcome.map_err(|failure| self.failed(failure)),
        }
    }
}

/// Returns the key by which the launcher knows a value, if it can have that.
fn name_of(key: &str) -> Option<CString> {
    let name = CString::new(format!("{PREFIX}{key}")).ok()?;
    Some(name).filter(|name| name.as_bytes_with_nul().len() <= abi::KEY_BYTES)
}
