//! Tests that run examples, in every crate that has some.

/// Makes a test of each example, which calls its `main`.
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
