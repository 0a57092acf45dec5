//! Observation of a runtime from outside.

use std::fmt;
use std::sync::Arc;

use talpf_primitives::Mutex;

use crate::dump::Dump;
use crate::metrics::Metrics;

/// A running program, as a monitor sees it.
pub(crate) trait Observed: Send + Sync {
    /// Returns the counts of the workers so far.
    fn metrics(&self) -> Metrics;

    /// Takes a snapshot of the tasks.
    fn dump(&self) -> Dump;
}

/// A view of the runtime that was last started with this monitor in its [`Config`](crate::Config),
/// for code without access to the [`Runtime`](crate::Runtime). It still shows a runtime that has
/// shut down.
#[derive(Clone, Default)]
pub struct Monitor {
    runtime: Arc<Mutex<Option<Arc<dyn Observed>>>>,
}

impl Monitor {
    pub(crate) fn attach(&self, runtime: Arc<dyn Observed>) {
        *self.runtime.lock() = Some(runtime);
    }

    fn runtime(&self) -> Option<Arc<dyn Observed>> {
        self.runtime.lock().clone()
    }

    /// Returns the counts of the workers so far; `None` before a runtime was started.
    pub fn metrics(&self) -> Option<Metrics> {
        self.runtime().map(|runtime| runtime.metrics())
    }

    /// Takes a snapshot of the tasks, as [`Group::dump`](crate::Group::dump).
    pub fn dump(&self) -> Option<Dump> {
        self.runtime().map(|runtime| runtime.dump())
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attached = self.runtime.lock().is_some();
        write!(f, "Monitor ({})", if attached { "attached" } else { "not attached" })
    }
}
