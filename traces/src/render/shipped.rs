//! Views of the folder `cfg`, as Paraver reads them.

macro_rules! shipped {
    ($($name:literal)*) => {
        /// Name and text of each view.
        pub(super) const SHIPPED: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../cfg/", $name, ".cfg")))),*];
    };
}

shipped! {
    "bandwidth"
    "bytes-in-flight"
    "bytes-matrix"
    "call-to-end-of-sync"
    "control-messages"
    "control-messages-matrix"
    "events"
    "idle-because-time"
    "idle-because"
    "messages-in-flight"
    "messages-matrix"
    "parallelism-profile"
    "parallelism"
    "poll-completions"
    "put-latency"
    "requests-outstanding-of-all-ranks"
    "requests-outstanding"
    "rounds-open"
    "slow-cores"
    "spans"
    "states-by-cpu"
    "states-time"
    "states"
    "steps"
    "sync-cost"
    "sync-lane"
    "sync-mode-time"
    "sync-mode"
    "sync-round"
    "task-id"
    "task-type-average"
    "task-type-by-cpu"
    "task-type-slices"
    "task-type-time"
    "task-type"
    "tasks-not-done"
    "tasks-ready"
    "tasks-running"
    "tasks-started"
    "timed-part"
    "useful-duration-histogram"
    "useful-duration"
    "window-wait"
}
