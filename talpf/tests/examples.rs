//! The examples of this crate run to their ends, where each has checked its result.

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
    histogram: "../examples/histogram.rs",
    jacobi: "../examples/jacobi.rs",
    lanes: "../examples/lanes.rs",
    ring: "../examples/ring.rs",
    work_sharing: "../examples/work_sharing.rs",
}
