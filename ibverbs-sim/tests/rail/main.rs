//! Tests of rails: one suite for all of them, and what only one of them has.

mod conformance;
#[path = "../wire/counting_allocator.rs"]
mod counting_allocator;
mod ends;
mod example;
mod long_operations;
mod ofi;
mod packets;
mod processes;
mod revoked;
mod routed;
mod shm;
mod sleep;
