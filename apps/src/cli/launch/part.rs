//! The part of a launcher on another machine: it runs one process, and ends it when the launcher does.
//!
//! `talpf launch` starts it by a command such as `ssh`, which may pass arguments through a shell, and
//! shows them to everybody. So the number of the process, its secret and its arguments come by the
//! standard input, as one line of JSON. Each later line is the name of a signal for the process, as `ssh`
//! passes none on; the end of this input is that of the launcher.

use std::ffi::OsStr;
use std::io::{self, BufRead};
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::thread;

use serde::{Deserialize, Serialize};
use talpf_apps::Error;
use talpf_apps::run::Membership;

use super::children::{Children, local};
use super::event::Event;
use super::forwarded_signal::ForwardedSignal;
use super::forwarder::Forwarder;

/// Longest line, in bytes.
const LONGEST_LINE: u64 = 1 << 20;

/// A process to run.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Part {
    member: Membership,
    line: Vec<String>,
}

impl Part {
    /// Makes a part of a membership and the arguments of the process; `None` if one of these is no
    /// text.
    pub(super) fn new<'a>(
        member: &Membership,
        line: impl Iterator<Item = &'a OsStr>,
    ) -> Option<Self> {
        let line = line.map(|argument| argument.to_str().map(str::to_owned));
        Some(Self { member: member.clone(), line: line.collect::<Option<_>>()? })
    }

    /// Returns the part as a line of text.
    ///
    /// **Errors**: none that occur.
    pub(super) fn to_line(&self) -> io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Reads a part; `None` if the input has none.
    fn read(input: impl BufRead) -> Option<Self> {
        let mut line = Vec::new();
        input.take(LONGEST_LINE).read_until(b'\n', &mut line).ok()?;
        serde_json::from_slice(&line).ok()
    }
}

/// Runs the part that the standard input names.
///
/// **Errors**: [`Error::NoPart`], and those of [`launch`](super::run).
pub(super) fn run() -> Result<Option<u8>, Error> {
    let part = Part::read(io::stdin().lock()).ok_or(Error::NoPart)?;
    let Part { member, line } = part;
    let (process, processes) = (member.process, member.processes);
    let (sender, events) = channel();
    let forwarder = Forwarder::start(&sender)?;
    let mut children = Children::new(processes, false);
    let command = local(member, line.iter().map(AsRef::as_ref));
    let started = command.and_then(|command| {
        // The launcher puts the number of the process in front of its lines.
        children.start(process, command, None, Stdio::inherit(), &sender)
    });
    if let Err(source) = started {
        return Err(Error::Process { process, processes, source });
    }
    // This thread ends with the process, if the launcher does not end before.
    thread::spawn(move || {
        for line in io::stdin().lock().split(b'\n').map_while(Result::ok) {
            if let Some(forwarded) = ForwardedSignal::of_line(&line) {
                let _ = sender.send(Event::Forward(forwarded));
            }
        }
        let _ = sender.send(Event::Interrupt);
    });
    children.watch(&events);
    forwarder.end();
    children.result()
}
