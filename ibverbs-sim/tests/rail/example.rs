//! The example of rails runs to its end, where it has checked its result.

#[path = "../../examples/rails.rs"]
mod rails;

#[test]
fn rails() {
    rails::main();
}
