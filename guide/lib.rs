//! The guide's chapters and the README as documentation, so that `cargo test -p talpf-guide` compiles
//! and runs every code block in them. `mdbook build guide -d target/guide` makes the pages.

/// Includes a chapter when the code blocks of documentation are tested, and only then: links between
/// chapters are those of the book.
macro_rules! chapters {
    ($($name:ident: $path:literal;)*) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!($path)]
            mod $name {}
        )*
    };
}

chapters! {
    readme: "../README.md";
    introduction: "src/introduction.md";
    first_program: "src/first-program.md";
    regions_and_guards: "src/regions-and-guards.md";
    supersteps: "src/supersteps.md";
    lanes: "src/lanes.md";
    notifications: "src/notifications.md";
    queues: "src/queues.md";
    samples_and_phasers: "src/samples-and-phasers.md";
    replay: "src/replay.md";
    collectives: "src/collectives.md";
    libraries: "src/libraries.md";
    messages: "src/messages.md";
    processes: "src/processes.md";
    traces: "src/traces.md";
    virtual_time: "src/virtual-time.md";
    from_ompss: "src/from-ompss.md";
    from_mpi_openmp: "src/from-mpi-openmp.md";
    from_lpf_gaspi: "src/from-lpf-gaspi.md";
}
