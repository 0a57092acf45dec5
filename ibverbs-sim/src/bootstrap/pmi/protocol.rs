//! The messages of PMI, in the forms of both versions.
//!
//! | | version 1 | version 2 |
//! |---|---|---|
//! | form | a line of `name=value` fields, blanks between | a length of six characters, then fields that end in `;` |
//! | begin | `init`, `get_maxes`, `get_my_kvsname` | `init` as a line, `fullinit` |
//! | values | `put`, `barrier_in`, `get` | `kvs-put`, `kvs-fence`, `kvs-get` |
//! | end | `finalize` | `finalize` |
//!
//! **Source**: the descriptions of the wire protocols of MPICH's PMI-1 and PMI-2, and what SLURM's plugin `pmi2` has of
//! both.

use std::{
    fs::File,
    io::{self, ErrorKind, Read, Write},
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Characters of the length of a message.
const LENGTH: usize = 6;
/// Most bytes of a message of the launcher.
const LONGEST: usize = 1 << 16;
/// Most bytes of a line of a process, with its end: SLURM takes no more of it, and loses the rest.
pub(super) const LONGEST_LINE: usize = 1024;
/// Most bytes of a value, unless the launcher says less.
pub(super) const LONGEST_VALUE: usize = 1023;

/// Versions of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// Connection to a launcher.
#[derive(Debug)]
pub(super) struct Connection {
    stream: File,
    version: Version,
    timeout: Duration,
}

/// Fields of a message of the launcher.
#[derive(Debug)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    fn is_refusal(&self) -> bool {
        self.get("rc").is_some_and(|status| status.trim() != "0")
    }

    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.get(name)?.trim().parse().ok()
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text)
}

impl Connection {
    /// Agrees with the launcher on a version: the first one if the launcher has it.
    ///
    /// **Errors**: those of [`call`](Self::call).
    pub(super) fn begin(stream: File, timeout: Duration) -> io::Result<Self> {
        let mut connection = Self { stream, version: Version::One, timeout };
        let first = connection.init(1, 1)?;
        if !first.is_refusal() && first.number("pmi_version") == Some(1) {
            return Ok(connection);
        }
        let second = connection.init(2, 0)?;
        if second.is_refusal() || second.number("pmi_version") != Some(2) {
            let text = "the launcher has neither version 1 nor version 2 of PMI";
            return Err(io::Error::new(ErrorKind::Unsupported, text));
        }
        connection.version = Version::Two;
        Ok(connection)
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// Introduces this process, in the form of version 1 whatever the version.
    fn init(&mut self, version: u32, subversion: u32) -> io::Result<Fields> {
        let line = format!("cmd=init pmi_version={version} pmi_subversion={subversion}\n");
        self.stream.write_all(line.as_bytes())?;
        let line = self.line()?;
        expect("response_to_init", fields(&line, ' '))
    }

    /// Sends a command with its fields, and returns those of the response `expected`.
    ///
    /// **Errors**: the launcher has ended, does not respond in time, or responds with something else.
    pub(super) fn call(
        &mut self,
        command: &str,
        given: &[(&str, &str)],
        expected: &str,
    ) -> io::Result<Fields> {
        let response = match self.version {
            Version::One => {
                self.stream.write_all(line(command, given).as_bytes())?;
                fields(&self.line()?, ' ')
            }
            Version::Two => {
                let given = given.iter().map(|(name, value)| format!("{name}={value};"));
                let text = format!("cmd={command};{}", given.collect::<String>());
                self.stream.write_all(format!("{:<LENGTH$}{text}", text.len()).as_bytes())?;
                fields(&self.counted()?, ';')
            }
        };
        expect(expected, response)
    }

    /// Receives a line.
    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            self.receive(&mut byte)?;
            match byte {
                [b'\n'] => break,
                _ if line.len() == LONGEST => return Err(invalid("a line without an end".into())),
                [byte] => line.push(byte),
            }
        }
        String::from_utf8(line).map_err(|_| invalid("a line that is no text".into()))
    }

    /// Receives a message with its length in front.
    fn counted(&mut self) -> io::Result<String> {
        let mut length = [0; LENGTH];
        self.receive(&mut length)?;
        let text = String::from_utf8_lossy(&length);
        let length = text.trim().parse().ok().filter(|length| *length <= LONGEST);
        let length = length.ok_or_else(|| invalid(format!("a length of {text:?}")))?;
        let mut message = vec![0; length];
        self.receive(&mut message)?;
        String::from_utf8(message).map_err(|_| invalid("a message that is no text".into()))
    }

    /// Receives bytes, each within the timeout.
    fn receive(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        let mut received = 0;
        while received < bytes.len() {
            let timeout = Timespec::try_from(self.timeout).ok();
            let mut wanted = [PollFd::new(&self.stream, PollFlags::IN)];
            match poll(&mut wanted, timeout.as_ref()) {
                Ok(0) => return Err(ErrorKind::TimedOut.into()),
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            match self.stream.read(&mut bytes[received..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => received += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Returns a command in the form of version 1.
pub(super) fn line(command: &str, given: &[(&str, &str)]) -> String {
    let given = given.iter().map(|(name, value)| format!(" {name}={value}"));
    format!("cmd={command}{}\n", given.collect::<String>())
}

/// Cuts a message into its fields.
fn fields(message: &str, separator: char) -> Fields {
    let fields = message.split(separator).filter_map(|field| field.trim().split_once('='));
    Fields(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// Checks the name of a response. Its status is left to the caller of `init`.
fn expect(expected: &str, fields: Fields) -> io::Result<Fields> {
    let is_refused = fields.is_refusal();
    match fields.get("cmd") {
        Some(name) if name == expected && (!is_refused || expected == "response_to_init") => {
            Ok(fields)
        }
        Some(name) if name == expected => {
            let why = fields.get("errmsg").or(fields.get("msg")).unwrap_or("no reason");
            Err(invalid(format!("{expected} refuses, with {why:?}")))
        }
        name => Err(invalid(format!("{:?} in place of {expected}", name.unwrap_or("nothing")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_cut_at_their_separators() {
        let one = fields("cmd=maxes kvsname_max=256  vallen_max=1024", ' ');
        assert_eq!((one.get("cmd"), one.number("vallen_max")), (Some("maxes"), Some(1024)));
        let two = fields("cmd=kvs-get-response;found=TRUE;value=a b;rc=0;", ';');
        assert_eq!((two.get("value"), two.number("rc")), (Some("a b"), Some(0)));
        assert!(fields("", ';').get("cmd").is_none());
    }
}
