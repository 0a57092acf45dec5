//! A scripted launcher with PMI, of either version, which takes nothing but what the protocol has.

use std::{
    collections::HashMap,
    io::{Read, Write},
    os::unix::net::UnixStream,
    sync::{Barrier, Mutex},
};

/// Longest value that the launcher takes.
const LONGEST_VALUE: usize = 64;

pub(crate) struct PmiServer {
    version: u32,
    processes: usize,
    values: Mutex<HashMap<String, String>>,
    barrier: Barrier,
}

impl PmiServer {
    pub(crate) fn new(version: u32, processes: usize) -> Self {
        let (values, barrier) = (Mutex::default(), Barrier::new(processes));
        Self { version, processes, values, barrier }
    }

    /// Serves a process until it leaves. Returns the commands that it has given.
    pub(crate) fn serve(&self, mut stream: UnixStream, rank: usize) -> Vec<String> {
        let mut commands = Vec::new();
        let mut is_counted = false;
        while let Some(message) = receive(&mut stream, is_counted) {
            let separator = if is_counted { ';' } else { ' ' };
            let fields = message.split(separator).filter(|field| !field.is_empty());
            let fields: HashMap<_, _> =
                fields.map(|field| field.split_once('=').expect("a field")).collect();
            commands.push(fields["cmd"].to_owned());
            let (answer, is_last) = match is_counted {
                false => self.answer(&fields),
                true => self.answer_counted(&fields, rank),
            };
            if is_counted {
                write!(stream, "{:>6}{answer}", answer.len()).unwrap();
            } else {
                writeln!(stream, "{answer}").unwrap();
            }
            is_counted |=
                fields["cmd"] == "init" && answer.contains("pmi_version=2 pmi_subversion=0 rc=0");
            if is_last {
                break;
            }
        }
        commands
    }

    fn put(&self, key: &str, value: &str) {
        assert!(value.len() < LONGEST_VALUE || self.version == 2, "{value}");
        let before = self.values.lock().unwrap().insert(key.to_owned(), value.to_owned());
        assert_eq!(before, None, "{key} is put once");
    }

    /// Answers a line, and says whether it is the last one.
    fn answer(&self, fields: &HashMap<&str, &str>) -> (String, bool) {
        let text = match fields["cmd"] {
            "init" => {
                let is_ours = fields["pmi_version"] == self.version.to_string();
                let (subversion, status) = (2 - self.version, if is_ours { 0 } else { -1 });
                let version = self.version;
                format!(
                    "cmd=response_to_init pmi_version={version} pmi_subversion={subversion} rc={status}"
                )
            }
            "get_maxes" => {
                format!("cmd=maxes kvsname_max=256 keylen_max=64 vallen_max={LONGEST_VALUE}")
            }
            "get_my_kvsname" => "cmd=my_kvsname kvsname=kvs_7_0".to_owned(),
            "put" => {
                assert_eq!(fields["kvsname"], "kvs_7_0");
                self.put(fields["key"], fields["value"]);
                "cmd=put_result rc=0 msg=success".to_owned()
            }
            "barrier_in" => {
                self.barrier.wait();
                "cmd=barrier_out".to_owned()
            }
            "get" => match self.values.lock().unwrap().get(fields["key"]) {
                Some(value) => format!("cmd=get_result rc=0 msg=success value={value}"),
                None => "cmd=get_result rc=-1 msg=key_not_found".to_owned(),
            },
            "finalize" => return ("cmd=finalize_ack".to_owned(), true),
            other => panic!("{other}"),
        };
        (text, false)
    }

    fn answer_counted(&self, fields: &HashMap<&str, &str>, rank: usize) -> (String, bool) {
        let text = match fields["cmd"] {
            "fullinit" => {
                assert_eq!(fields["pmirank"], rank.to_string());
                let size = self.processes;
                format!(
                    "cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank={rank};size={size};\
                     appnum=0;debugged=FALSE;pmiverbose=0;rc=0;"
                )
            }
            "kvs-put" => {
                self.put(fields["key"], fields["value"]);
                "cmd=kvs-put-response;rc=0;".to_owned()
            }
            "kvs-fence" => {
                self.barrier.wait();
                "cmd=kvs-fence-response;rc=0;".to_owned()
            }
            "kvs-get" => match self.values.lock().unwrap().get(fields["key"]) {
                Some(value) => format!("cmd=kvs-get-response;found=TRUE;value={value};rc=0;"),
                None => "cmd=kvs-get-response;found=FALSE;rc=0;".to_owned(),
            },
            "finalize" => return ("cmd=finalize-response;rc=0;".to_owned(), true),
            other => panic!("{other}"),
        };
        (text, false)
    }
}

/// Receives a message; `None` at the end of the stream.
fn receive(stream: &mut UnixStream, is_counted: bool) -> Option<String> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    if is_counted {
        let mut length = [0; 6];
        stream.read_exact(&mut length).ok()?;
        let length = str::from_utf8(&length).unwrap().trim().parse().unwrap();
        bytes.resize(length, 0);
        stream.read_exact(&mut bytes).ok()?;
        return String::from_utf8(bytes).ok();
    }
    loop {
        stream.read_exact(&mut byte).ok()?;
        if byte == *b"\n" {
            return String::from_utf8(bytes).ok();
        }
        bytes.extend(byte);
    }
}
