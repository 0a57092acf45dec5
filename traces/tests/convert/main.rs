//! Traces in forms of other programs: one behaviour per file.

mod chrome_is_json;
mod csv_has_every_record;
mod outputs_replace_nothing_they_need;
mod ovni_reader;
mod ovni_streams_are_legal;
mod ovniemu_takes_it;
mod perfetto_has_every_slice_and_flow;
mod perfetto_reads_it;
mod run;
#[path = "../paraver/support/mod.rs"]
mod support;
