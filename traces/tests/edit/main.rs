//! Traces made of others: one behaviour per file.

mod cut_keeps_what_is_inside;
mod merge_joins_pieces;
mod merge_of_cuts_is_the_whole;
mod merge_of_processes_is_the_whole;
mod outputs_replace_nothing_they_need;
#[path = "../paraver/support/mod.rs"]
mod support;
