//! Tests of queue pairs between processes that libfabric joins, over TCP of this machine. They are skipped
//! where it is not installed.

#[path = "../verbs/common/mod.rs"]
mod common;
mod long_writes;
