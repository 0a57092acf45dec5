//! The bootstrap of processes that a launcher with PMI has started: `mpirun` of MPICH, or `srun` of
//! SLURM with `--mpi=pmi2`. Nothing of MPI is linked.
//!
//! The launcher keeps the values. Keys and values are text without blanks, and short, so both travel as
//! hexadecimal digits, a value in several pieces.

mod environment;
mod protocol;

use std::{fs::File, io, net::IpAddr, os::fd::OwnedFd, time::Duration};

pub use self::environment::PmiLaunch;
use self::protocol::{Connection, LONGEST_LINE, LONGEST_VALUE, Version, line};
use super::{Bootstrap, BootstrapError, machine, settings};

/// Most characters of a key.
const LONGEST_KEY: usize = 63;
/// Characters of the number of pieces in front of a value.
const COUNT: usize = 4;

/// Bootstrap of a process that a launcher with PMI has started.
#[derive(Debug)]
pub struct PmiBootstrap {
    process: u32,
    processes: u32,
    connection: Connection,
    /// Name of the values in version 1.
    name: String,
    longest_value: usize,
    timeout: Duration,
    /// Set once the launcher has not answered in time.
    is_silent: bool,
}

impl PmiBootstrap {
    /// Joins the other processes, by the descriptor that the launcher has left. All processes must
    /// have the same settings.
    ///
    /// **Errors**: [`BootstrapError::Pmi`]; a process that does not come, or has other settings.
    pub fn join(
        launch: PmiLaunch,
        settings: &[(&str, &str)],
        timeout: Duration,
    ) -> Result<Self, BootstrapError> {
        let PmiLaunch { process, processes, .. } = launch;
        let taken = launch.take_descriptor();
        let descriptor = taken.map_err(|source| BootstrapError::Pmi { process, source })?;
        Self::over(descriptor, process, processes, settings, timeout)
    }

    /// As [`join`](Self::join), by a stream to the launcher.
    ///
    /// **Errors**: those of [`join`](Self::join).
    pub fn over(
        stream: impl Into<OwnedFd>,
        process: u32,
        processes: u32,
        settings: &[(&str, &str)],
        timeout: Duration,
    ) -> Result<Self, BootstrapError> {
        if process >= processes {
            return Err(BootstrapError::Number { process, processes });
        }
        let failed = |source| BootstrapError::Pmi { process, source };
        let stream = File::from(stream.into());
        let mut connection = Connection::begin(stream, timeout).map_err(failed)?;
        let (name, longest_value) = match connection.version() {
            Version::One => {
                let maxes = connection.call("get_maxes", &[], "maxes").map_err(failed)?;
                let longest = maxes.number("vallen_max").unwrap_or(LONGEST_VALUE + 1);
                let own = connection.call("get_my_kvsname", &[], "my_kvsname").map_err(failed)?;
                let name = own.get("kvsname").unwrap_or_default().to_owned();
                let key = "k".repeat(LONGEST_KEY);
                let without_value = [("kvsname", &*name), ("key", &key), ("value", "")];
                let room = LONGEST_LINE.saturating_sub(line("put", &without_value).len());
                (name, longest.saturating_sub(1).min(room))
            }
            Version::Two => {
                let number = process.to_string();
                let job = std::env::var("PMI_JOBID").unwrap_or_default();
                let given = [("pmijobid", &*job), ("pmirank", &*number), ("threaded", "FALSE")];
                let all = connection.call("fullinit", &given, "fullinit-response");
                let all = all.map_err(failed)?;
                for (name, own) in [("rank", process), ("size", processes)] {
                    if all.number(name).is_some_and(|said| said != own as usize) {
                        let said = all.get(name).unwrap_or_default();
                        let name = name.to_uppercase();
                        let text = format!("PMI_{name} is \"{own}\", but the launcher says {said}");
                        return Err(BootstrapError::Environment { text });
                    }
                }
                (job, LONGEST_VALUE)
            }
        };
        let longest_value = longest_value.clamp(COUNT + 2, LONGEST_VALUE);
        let is_silent = false;
        let mut all =
            Self { process, processes, connection, name, longest_value, timeout, is_silent };
        settings::compare(&mut all, settings)?;
        Ok(all)
    }

    fn call(
        &mut self,
        of: [&str; 2],
        given: &[(&str, &str)],
        expected: [&str; 2],
    ) -> Result<protocol::Fields, BootstrapError> {
        let at = self.connection.version() as usize;
        let name = self.name.clone();
        let mut fields = Vec::new();
        if at == Version::One as usize && !given.is_empty() {
            fields.push(("kvsname", &*name));
        }
        fields.extend(given);
        let called = self.connection.call(of[at], &fields, expected[at]);
        let is_late = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
        self.is_silent |= called.as_ref().is_err_and(is_late);
        called.map_err(|source| BootstrapError::Pmi { process: self.process, source })
    }
}

impl Bootstrap for PmiBootstrap {
    fn process(&self) -> u32 {
        self.process
    }

    fn processes(&self) -> u32 {
        self.processes
    }

    fn address(&self) -> IpAddr {
        machine::address()
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), BootstrapError> {
        let digits = digits(value);
        let room = self.longest_value - COUNT;
        let pieces = digits.len().div_ceil(room).max(1);
        let limit = 10usize.pow(COUNT as u32);
        if pieces >= limit || name(self.process, key, pieces).len() > LONGEST_KEY {
            let (key, bytes, limit) = (key.to_owned(), value.len(), limit * room / 2);
            return Err(BootstrapError::Put { key, bytes, limit });
        }
        for piece in 0..pieces {
            let digits = &digits[piece * room..digits.len().min((piece + 1) * room)];
            let (key, value) =
                (name(self.process, key, piece), format!("{pieces:0COUNT$}{digits}"));
            let given = [("key", &*key), ("value", &*value)];
            self.call(["put", "kvs-put"], &given, ["put_result", "kvs-put-response"])?;
        }
        Ok(())
    }

    fn fence(&mut self) -> Result<(), BootstrapError> {
        let expected = ["barrier_out", "kvs-fence-response"];
        match self.call(["barrier_in", "kvs-fence"], &[], expected) {
            Err(BootstrapError::Pmi { source, .. }) if source.kind() == io::ErrorKind::TimedOut => {
                Err(BootstrapError::Fence { processes: self.processes })
            }
            outcome => outcome.map(drop),
        }
    }

    fn get(&mut self, process: u32, key: &str) -> Result<Vec<u8>, BootstrapError> {
        let not_put = || BootstrapError::NotPut { process, key: key.to_owned() };
        let (mut digits, mut pieces, mut piece) = (String::new(), 1, 0);
        while piece < pieces {
            let name = name(process, key, piece);
            let expected = ["get_result", "kvs-get-response"];
            let found = self.call(["get", "kvs-get"], &[("key", &*name)], expected)?;
            let value = found.get("value").ok_or_else(not_put)?;
            let (count, rest) = value.split_at_checked(COUNT).ok_or_else(not_put)?;
            pieces = count.parse().map_err(|_| not_put())?;
            digits.push_str(rest);
            piece += 1;
        }
        let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
        let byte = |pair: &[u8; 2]| {
            let text = str::from_utf8(pair).ok()?;
            u8::from_str_radix(text, 16).ok()
        };
        let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
        bytes.filter(|_| rest.is_empty()).ok_or_else(not_put)
    }
}

impl Drop for PmiBootstrap {
    fn drop(&mut self) {
        // The launcher takes a process that ends without this for one that has failed.
        if !self.is_silent {
            let expected = ["finalize_ack", "finalize-response"];
            let _ = self.call(["finalize"; 2], &[], expected);
        }
    }
}

/// Returns the name of a piece of a value.
fn name(process: u32, key: &str, piece: usize) -> String {
    format!("talpf-{process}-{}-{piece}", digits(key.as_bytes()))
}

/// Returns bytes as hexadecimal digits.
fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
