//! Looking at a runtime from outside.

use std::fmt;
use std::sync::Arc;

use talpf_primitives::Mutex;

use crate::dump::Dump;
use crate::metrics::Metrics;
use crate::scheduler::Shared;

/// A view of the runtime that was last started with it in its [`Config`](crate::Config), for those
/// who do not have that runtime in their hands. It goes on to show a runtime that has shut down.
#[derive(Clone, Default)]
pub struct Monitor {
    runtime: Arc<Mutex<Option<Arc<Shared>>>>,
}

impl Monitor {
    pub(crate) fn attach(&self, shared: &Arc<Shared>) {
        *self.runtime.lock() = Some(Arc::clone(shared));
    }

    fn runtime(&self) -> Option<Arc<Shared>> {
        self.runtime.lock().clone()
    }

    /// What the workers have done so far; `None` before a runtime was started.
    pub fn metrics(&self) -> Option<Metrics> {
        self.runtime().map(|shared| shared.metrics())
    }

    /// What its tasks do and wait for, as [`Group::dump`](crate::Group::dump).
    pub fn dump(&self) -> Option<Dump> {
        self.runtime().map(|shared| Dump::take(&shared))
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attached = self.runtime.lock().is_some();
        write!(f, "Monitor ({})", if attached { "of a runtime" } else { "of nothing yet" })
    }
}
