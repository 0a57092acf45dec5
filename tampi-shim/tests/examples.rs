//! The examples of this crate run to their ends, where each has checked its result.
//!
//! `mpi_window` is a case of `ranked`.

#[macro_use]
#[path = "../../runtime/tests/examples/each.rs"]
mod each;

examples! {
    iwait: "../examples/iwait.rs",
    matched_probe: "../examples/matched_probe.rs",
    ping: "../examples/ping.rs",
    rank_groups: "../examples/rank_groups.rs",
}
