//! Contents of traces, and reports of the linter: one behaviour per file.

mod dropped_records_are_reported;
mod event_table;
mod events_keep_cpus_right;
mod files_by_their_name;
mod idle_because;
mod labels_name_everything;
mod linter_accepts_other_traces;
mod linter_refuses_pitfalls;
mod linter_survives_anything;
mod messages_keep_field_order;
mod oracle;
mod own_workers_have_a_row_each;
mod parts_of_a_run;
mod ptd_reads_it;
mod random_runs_are_clean;
mod states_have_no_gaps;
mod support;
mod syncs_stay_on_their_thread;
mod threads_outside_have_a_row;
mod ties_keep_causal_order;
mod unfinished_syncs_end_with_the_trace;
mod writer_refuses_what_paraver_cannot_hold;
mod written_trace_is_clean;
