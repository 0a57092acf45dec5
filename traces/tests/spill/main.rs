//! Records that go to a file during the run: one behaviour per file.

mod a_killed_run_leaves_a_trace;
mod damage_costs_the_block;
mod other_files_are_refused;
mod run;
mod the_same_trace_as_from_memory;
