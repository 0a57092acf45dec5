//! The examples of this crate run to their ends, where each has checked its result.

#[macro_use]
mod each;

examples! {
    cholesky: "../../examples/cholesky.rs",
    events: "../../examples/events.rs",
    fibonacci: "../../examples/fibonacci.rs",
    pi: "../../examples/pi.rs",
    reduction: "../../examples/reduction.rs",
    tokio_io: "../../examples/tokio_io.rs",
}

#[cfg(feature = "tracing")]
examples! {
    spans: "../../examples/spans.rs",
}
