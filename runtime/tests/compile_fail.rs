//! Programs that the types forbid: writing what was declared as read, using a guard that has gone,
//! bodies and elements that must not change threads.

#[test]
fn forbidden_programs_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
