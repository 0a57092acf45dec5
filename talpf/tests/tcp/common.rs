//! Runs a program on ranks that TCP connects.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ibverbs_sim::{Packets, TcpMeeting};
use talpf::{Config, Context, Error, hook_on_rail};

pub(crate) use crate::in_one_process::*;
pub(crate) use crate::outcomes::{COPIED, run, says};

/// Number that strangers do not know.
const SECRET: u128 = 7;
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the result of each rank.
pub(crate) fn run_all<R, F>(
    config: Config,
    main: impl Fn(Context) -> F + Sync,
) -> Vec<Result<R, Error>>
where
    F: Future<Output = Result<R, Error>> + Send + 'static,
    R: Send + 'static,
{
    let _watchdog = watchdog(&format!("{} processes", config.ranks));
    let listen = |_| TcpMeeting::listen(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
    let meetings: Vec<_> = (0..config.ranks).map(listen).collect();
    let addresses = meetings.iter().map(|meeting| Some(meeting.address().unwrap()));
    let addresses: Vec<_> = addresses.collect();
    let (main, config, addresses) = (&main, &config, &*addresses);
    thread::scope(|scope| {
        let start = |(process, meeting): (u32, TcpMeeting)| {
            scope.spawn(move || {
                let wire = meeting.join(process, addresses, SECRET, TIMEOUT).unwrap();
                let rail = Packets::new(Arc::new(wire));
                hook_on_rail(Arc::new(rail), config.clone(), main)
            })
        };
        let threads: Vec<_> = (0..).zip(meetings).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
