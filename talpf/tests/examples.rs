//! The examples of this crate run to their ends, where each has checked its result.

#[macro_use]
#[path = "../../runtime/tests/examples/each.rs"]
mod each;

examples! {
    histogram: "../examples/histogram.rs",
    jacobi: "../examples/jacobi.rs",
    lanes: "../examples/lanes.rs",
    library: "../examples/library.rs",
    master_worker: "../examples/master_worker.rs",
    pipeline: "../examples/pipeline.rs",
    raw_slots: "../examples/raw_slots.rs",
    ring: "../examples/ring.rs",
    work_sharing: "../examples/work_sharing.rs",
}
