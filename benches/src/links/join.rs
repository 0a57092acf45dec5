//! Rails of every kind between two processes of this machine, which meet in a folder.

use std::fs;
use std::io::{Error as IoError, ErrorKind};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ibverbs_sim::{OfiEnd, Packets, Rail, ShmConfig, ShmRail, SocketWire};

use super::{Kind, Wanted};
use crate::error::Error;

pub(super) const TIMEOUT: Duration = Duration::from_secs(60);
const PROCESSES: u32 = 2;

/// Joins the other process.
pub(super) fn join(folder: &Path, wanted: &Wanted, process: u32) -> Result<Arc<dyn Rail>, Error> {
    let refused = |reason| Error::System { doing: "joining a peer", reason };
    let wire = || SocketWire::join(folder, process, PROCESSES, TIMEOUT).map_err(refused);
    Ok(match wanted.kind {
        Kind::Shm => {
            let run = folder.display().to_string();
            let rail = ShmRail::join(&run, process, PROCESSES, TIMEOUT, &ShmConfig::default());
            Arc::new(rail.map_err(refused)?)
        }
        Kind::Packets => Arc::new(Packets::new(Arc::new(wire()?))),
        Kind::Ofi => {
            let failed = |error| refused(IoError::other(error));
            let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
            let end = OfiEnd::open(&wanted.choice, loopback, PROCESSES).map_err(failed)?;
            let address = end.address().map_err(failed)?;
            let other = exchange(folder, process, &address).map_err(refused)?;
            let mut addresses = [None, None];
            addresses[1 - process as usize] = Some(other);
            // The folder is that of this run alone.
            let name = folder.as_os_str().as_encoded_bytes();
            let run = name.iter().fold(0, |run: u64, byte| run.rotate_left(7) ^ u64::from(*byte));
            Arc::new(end.join(&addresses, wire()?, run, TIMEOUT).map_err(failed)?)
        }
    })
}

/// Gives the other process an address, and returns that of the other one.
fn exchange(folder: &Path, process: u32, address: &[u8]) -> Result<Vec<u8>, IoError> {
    let at = |process: u32| folder.join(format!("address-{process}"));
    // Nobody reads a part of it.
    let whole = folder.join(format!("unfinished-{process}"));
    fs::write(&whole, address)?;
    fs::rename(&whole, at(process))?;
    let start = Instant::now();
    loop {
        match fs::read(at(1 - process)) {
            Err(error) if error.kind() == ErrorKind::NotFound && start.elapsed() < TIMEOUT => {
                std::thread::sleep(Duration::from_millis(1));
            }
            read => return read,
        }
    }
}
