//! Machines of a hosts file, and commands that run processes there.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use talpf_apps::Error;
use talpf_apps::run::Membership;
use talpf_apps::run::hosts::{self, Host};

use super::options::Options;
use super::part::Part;

/// Text of a command that stands for the name of a machine.
const HOST: &str = "{host}";
/// Port of no meaning: nothing is sent there.
const DISCARD: u16 = 9;

/// The machines of a run.
pub(super) struct Remote {
    hosts: Vec<Host>,
    /// Words of the command that runs a program on a machine.
    via: Vec<String>,
    program: OsString,
    /// Address of this machine, if it is given.
    address: Option<String>,
}

impl Remote {
    /// Reads a hosts file, and tries the command with each machine of the run.
    ///
    /// **Errors**: those of [`hosts::read`]; [`Error::OutOfRange`] if the machines have fewer
    /// processes than the run; [`Error::Host`] if a machine does not run this version.
    pub(super) fn new(file: &Path, options: &Options) -> Result<Self, Error> {
        let mut hosts = hosts::read(file)?;
        let total = hosts.iter().map(|host| host.processes).sum();
        let processes = options.processes.unwrap_or(total);
        if processes > total {
            let (name, value) = ("processes", processes);
            return Err(Error::OutOfRange { name, value, least: 1, most: total });
        }
        // Later machines have nothing to do if the run has fewer processes.
        let mut left = processes;
        for host in &mut hosts {
            host.processes = host.processes.min(left);
            left -= host.processes;
        }
        hosts.retain(|host| host.processes > 0);
        let via = options.via.split_whitespace().map(str::to_owned).collect();
        let program = env::current_exe().map_err(Error::Program)?.into();
        let remote = Self { hosts, via, program, address: options.address.clone() };
        remote.check(file)?;
        Ok(remote)
    }

    /// Returns the number of processes.
    pub(super) fn processes(&self) -> usize {
        self.hosts.iter().map(|host| host.processes).sum()
    }

    /// Returns the address by which the machines reach this one.
    ///
    /// **Errors**: [`Error::NoAddress`].
    pub(super) fn address(&self) -> Result<String, Error> {
        if let Some(address) = &self.address {
            return Ok(address.clone());
        }
        let mut last = None;
        // An address that is no loopback is known to all machines, this one included.
        for host in &self.hosts {
            match address_towards(&host.name) {
                Ok(address) if !address.starts_with("127.") => return Ok(address),
                found => last = Some((host, found)),
            }
        }
        match last {
            Some((_, Ok(address))) => Ok(address),
            Some((host, Err(source))) => Err(Error::NoAddress { host: host.name.clone(), source }),
            None => Ok("127.0.0.1".to_owned()),
        }
    }

    /// Returns the command of a process, and the input that it gets.
    ///
    /// **Errors**: an argument is no text.
    pub(super) fn command<'a>(
        &self,
        member: &Membership,
        line: impl Iterator<Item = &'a OsStr>,
    ) -> io::Result<(Command, Option<Vec<u8>>)> {
        let part = Part::new(member, line).ok_or_else(|| {
            io::Error::new(ErrorKind::InvalidInput, "an argument for another machine is no UTF-8")
        })?;
        let mut before = 0;
        let host = self.hosts.iter().find(|host| {
            before += host.processes;
            (member.process as usize) < before
        });
        let host = host.ok_or(ErrorKind::NotFound)?;
        let mut command = self.on(host);
        command.arg("part");
        Ok((command, Some(part.to_line()?)))
    }

    /// Returns the command that runs this program on a machine.
    fn on(&self, host: &Host) -> Command {
        let mut words = self.via.iter().map(|word| word.replace(HOST, &host.name));
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).arg(&self.program);
        command
    }

    /// Checks that every machine runs this version of the program.
    fn check(&self, file: &Path) -> Result<(), Error> {
        let checks: Vec<_> = thread::scope(|scope| {
            let check = |host| scope.spawn(move || self.check_host(host));
            let checks: Vec<_> = self.hosts.iter().map(check).collect();
            checks.into_iter().map(thread::ScopedJoinHandle::join).collect()
        });
        for (host, check) in self.hosts.iter().zip(checks) {
            if let Err(reason) = check.unwrap_or_else(|_| Err("no answer".into())) {
                return Err(Error::Host {
                    file: file.display().to_string(),
                    line: host.line,
                    host: host.name.clone(),
                    command: self.via.join(" "),
                    reason,
                });
            }
        }
        Ok(())
    }

    fn check_host(&self, host: &Host) -> Result<(), String> {
        let mut command = self.on(host);
        let output = command.arg("--version").stdin(Stdio::null()).output();
        let output = output.map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout);
        let own = concat!("talpf ", env!("CARGO_PKG_VERSION"));
        if output.status.success() && said.trim() == own {
            return Ok(());
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.lines().last().unwrap_or_default();
        Err(match output.status.success() {
            true => format!("it says {:?}, not {own}", said.trim()),
            false => format!("{}{}{last}", output.status, if last.is_empty() { "" } else { ": " }),
        })
    }
}

/// Returns the address of this machine on the way to another one. Nothing is sent.
fn address_towards(host: &str) -> io::Result<String> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect((host, DISCARD))?;
    Ok(socket.local_addr()?.ip().to_string())
}
