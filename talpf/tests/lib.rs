//! Tests of programs of ranks.
//!
//! A package of its own, because the settings of a profile are those of a package.
