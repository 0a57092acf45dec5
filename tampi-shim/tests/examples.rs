//! The examples of this crate run to their ends, where each has checked its result.
//!
//! `mpi_window` is a case of `ranked`.

macro_rules! examples {
    ($($name:ident: $path:literal,)*) => {$(
        #[path = $path]
        mod $name;

        #[test]
        fn $name() {
            $name::main().unwrap();
        }
    )*};
}

examples! {
    iwait: "../examples/iwait.rs",
    matched_probe: "../examples/matched_probe.rs",
    ping: "../examples/ping.rs",
    rank_groups: "../examples/rank_groups.rs",
}
