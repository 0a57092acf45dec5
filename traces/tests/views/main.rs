//! Summaries and pictures of traces: one behaviour per file.

mod any_input_is_an_error_at_most;
mod control_messages;
mod costs_of_syncs_that_overlap;
mod critical_path_of_edges;
mod diff_of_two_runs;
mod every_view_is_a_picture;
mod pictures_show_what_is_there;
mod summary_of_a_run;
#[path = "../paraver/support/mod.rs"]
mod support;
mod views_of_paraver;
