//! Tests of programs on the runtime.
//!
//! They are a package of their own because the settings of a profile are those of a package.
