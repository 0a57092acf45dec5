//! A scripted launcher that speaks PMI as the plugin `pmi2` of SLURM does, which `srun --mpi=pmi2` starts.
//!
//! The server takes both versions, and differs from that of MPICH:
//!
//! - A command of version 1 is what one read of [`LONGEST_COMMAND`] bytes finds. Of a longer one the last field is
//!   lost, and a `put` without its value succeeds. The rest of it is no command, and has no answer.
//! - A length of version 2 has its blanks behind it.
//! - The status comes before all other fields, and a key that is not there is status 1 in version 1.
//! - Values are there once all processes have come to a fence.
//!
//! **Source**: `src/plugins/mpi/pmi2` of SLURM.

use std::{
    collections::HashMap,
    io::{Read, Write},
    mem,
    os::unix::net::UnixStream,
    sync::{Barrier, Mutex},
};

/// Most bytes of a command of version 1, with the end of its line.
const LONGEST_COMMAND: usize = 1024;
/// Most bytes of an `init`.
const LONGEST_INIT: usize = 64;

pub(crate) struct SlurmServer {
    version: u32,
    processes: usize,
    /// Name of the job in `PMI_JOBID`.
    job: &'static str,
    /// Values that no fence has published.
    put: Mutex<HashMap<String, String>>,
    values: Mutex<HashMap<String, String>>,
    barrier: Barrier,
}

impl SlurmServer {
    /// Creates a server that knows one version of PMI.
    pub(crate) fn new(version: u32, processes: usize, job: &'static str) -> Self {
        let (put, values) = Default::default();
        Self { version, processes, job, put, values, barrier: Barrier::new(processes) }
    }

    /// Serves a process until it leaves. Returns the commands that it has given.
    pub(crate) fn serve(&self, mut stream: UnixStream, rank: usize) -> Vec<String> {
        let mut commands = Vec::new();
        while !self.initialize(&mut stream, &mut commands) {}
        while let Some(command) = self.receive(&mut stream) {
            let Some(name) = command.get("cmd").cloned() else {
                commands.push("no command".to_owned());
                continue;
            };
            let answer = match self.version {
                1 => self.answer(&name, &command) + "\n",
                _ => {
                    let answer = self.answer_counted(&name, &command, rank);
                    format!("{:<6}{answer}", answer.len())
                }
            };
            stream.write_all(answer.as_bytes()).unwrap();
            let is_last = name == "finalize";
            commands.push(name);
            if is_last {
                break;
            }
        }
        commands
    }

    /// Takes an `init`, and returns `true` if it is of the version that this server knows.
    fn initialize(&self, stream: &mut UnixStream, commands: &mut Vec<String>) -> bool {
        let mut bytes = [0; LONGEST_INIT];
        let count = stream.read(&mut bytes).unwrap();
        let line = str::from_utf8(&bytes[..count]).unwrap();
        let is_known = [(1, 1), (2, 0)]
            .into_iter()
            .filter(|(version, _)| *version == self.version)
            .any(|(version, subversion)| {
                line == format!("cmd=init pmi_version={version} pmi_subversion={subversion}\n")
            });
        commands.push("init".to_owned());
        let (version, subversion) = (self.version, 2 - self.version);
        let status = if is_known { 0 } else { -1 };
        writeln!(
            stream,
            "cmd=response_to_init rc={status} pmi_version={version} pmi_subversion={subversion}"
        )
        .unwrap();
        is_known
    }

    /// Receives a command, whose fields are those that have an end; `None` at the end of the stream.
    fn receive(&self, stream: &mut UnixStream) -> Option<HashMap<String, String>> {
        let mut bytes = vec![0; LONGEST_COMMAND];
        let separator = if self.version == 1 {
            let count = stream.read(&mut bytes).ok().filter(|count| *count > 0)?;
            bytes.truncate(count);
            ' '
        } else {
            let mut length = [0; 6];
            stream.read_exact(&mut length).ok()?;
            bytes.resize(str::from_utf8(&length).unwrap().trim().parse().unwrap(), 0);
            stream.read_exact(&mut bytes).ok()?;
            ';'
        };
        let text = String::from_utf8(bytes).unwrap();
        if !text.starts_with("cmd=") {
            return Some(HashMap::new());
        }
        let fields = text.split_inclusive([separator, '\n']);
        let fields = fields.filter_map(|field| {
            let (name, value) = field.strip_suffix([separator, '\n'])?.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        });
        Some(fields.collect())
    }

    fn put(&self, command: &HashMap<String, String>) {
        if let (Some(key), Some(value)) = (command.get("key"), command.get("value")) {
            assert!(key.len() < 64 && value.len() < 1024, "{key}={value}");
            self.put.lock().unwrap().insert(key.clone(), value.clone());
        }
    }

    fn get(&self, command: &HashMap<String, String>) -> Option<String> {
        self.values.lock().unwrap().get(&command["key"]).cloned()
    }

    /// Waits for all processes, and publishes what they have put.
    fn fence(&self) {
        if self.barrier.wait().is_leader() {
            let put = mem::take(&mut *self.put.lock().unwrap());
            self.values.lock().unwrap().extend(put);
        }
        self.barrier.wait();
    }

    fn answer(&self, name: &str, command: &HashMap<String, String>) -> String {
        match name {
            "get_maxes" => {
                "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024".to_owned()
            }
            "get_my_kvsname" => "cmd=my_kvsname rc=0 kvsname=4294967294.4294967290".to_owned(),
            "put" => {
                self.put(command);
                "cmd=put_result rc=0".to_owned()
            }
            "barrier_in" => {
                self.fence();
                "cmd=barrier_out rc=0".to_owned()
            }
            "get" => match self.get(command) {
                Some(value) => format!("cmd=get_result rc=0 value={value}"),
                None => "cmd=get_result rc=1".to_owned(),
            },
            "finalize" => "cmd=finalize_ack rc=0".to_owned(),
            other => panic!("{other}"),
        }
    }

    fn answer_counted(&self, name: &str, command: &HashMap<String, String>, rank: usize) -> String {
        match name {
            "fullinit" => {
                let given = ["pmijobid", "pmirank", "threaded"].map(|name| &*command[name]);
                assert_eq!(given, [self.job, &rank.to_string(), "FALSE"]);
                format!(
                    "cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank={rank};size={};\
                     appnum=-1;debugged=FALSE;pmiverbose=FALSE;",
                    self.processes
                )
            }
            "kvs-put" => {
                self.put(command);
                "cmd=kvs-put-response;rc=0;".to_owned()
            }
            "kvs-fence" => {
                self.fence();
                "cmd=kvs-fence-response;rc=0;".to_owned()
            }
            "kvs-get" => match self.get(command) {
                Some(value) => format!("cmd=kvs-get-response;rc=0;found=TRUE;value={value};"),
                None => "cmd=kvs-get-response;rc=0;found=FALSE;".to_owned(),
            },
            "finalize" => "cmd=finalize-response;rc=0;".to_owned(),
            other => panic!("{other}"),
        }
    }
}
