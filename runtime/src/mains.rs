//! Programs of several groups that communicate: they end together, and the first failure wins.

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;

use talpf_primitives::Mutex;

use crate::error::Error;
use crate::group::Group;
use crate::runtime::Runtime;
use crate::task::JoinHandle;

/// Ends the waits of other programs, with the reason for which one has failed.
type Fail = Arc<dyn Fn(&str) + Send + Sync>;

/// Programs that run, one a group, with results of type `R` and errors of type `E`.
///
/// A layer through which the programs communicate passes a function with each of them that ends
/// the waits of the others. It is called if the program fails or panics, and if its group is
/// cancelled.
pub struct Mains<R, E> {
    running: Vec<(Group, Fail, JoinHandle<Option<R>>)>,
    /// The failure that came first.
    first: Arc<Mutex<Option<E>>>,
    convert: fn(Error) -> E,
}

impl<R, E> Mains<R, E>
where
    R: Send + 'static,
    E: Display + Send + 'static,
{
    /// Creates an empty set. `convert` makes an error of the programs of one of this crate.
    pub fn new(convert: fn(Error) -> E) -> Self {
        Mains { running: Vec::new(), first: Arc::default(), convert }
    }

    /// Starts `program` as the main of `group`. After it, the main waits for the tasks of the
    /// group. `fail` may be called several times.
    ///
    /// **Errors**: a runtime that has shut down.
    pub fn start(
        &mut self,
        group: &Group,
        program: impl Future<Output = Result<R, E>> + Send + 'static,
        fail: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let fail: Fail = Arc::new(fail);
        let cancelled = Arc::downgrade(&fail);
        group.on_cancel(move |reason| {
            if let Some(fail) = cancelled.upgrade() {
                fail(&format!("its tasks were cancelled: {reason}"));
            }
        });
        let (first, convert) = (Arc::clone(&self.first), self.convert);
        let main = run(group.clone(), program, Arc::clone(&fail), first, convert);
        let handle = group.spawn_main("main", main)?;
        self.running.push((group.clone(), fail, handle));
        Ok(())
    }

    /// Blocks until all mains and the tasks of their groups have ended. Returns the results in the
    /// order of the starts.
    ///
    /// **Errors**: a hang; a panic of a program, which is the cause of the failures of the others;
    /// else the failure that came first.
    pub fn wait(self, runtime: &Runtime) -> Result<Vec<R>, E> {
        let mut results = Vec::new();
        let mut broken = None;
        for (group, fail, handle) in self.running {
            match runtime.block_on(handle) {
                Ok(Ok(value)) => results.extend(value),
                Ok(Err(error)) | Err(error) => {
                    fail(&error.to_string());
                    // Tasks under way may still communicate.
                    let _ = runtime.block_on(group.wait());
                    broken.get_or_insert(error);
                }
            }
        }
        let first = self.first.lock().take();
        match (broken, first) {
            (Some(error), _) => Err((self.convert)(error)),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(results),
        }
    }
}

/// Runs a program and waits for the tasks of its group. Keeps its error if it is the first.
async fn run<R, E: Display>(
    group: Group,
    program: impl Future<Output = Result<R, E>>,
    fail: Fail,
    first: Arc<Mutex<Option<E>>>,
    convert: fn(Error) -> E,
) -> Option<R> {
    let guard = PanicGuard(&fail);
    let result = match program.await {
        Ok(value) => group.wait().await.map(|()| value).map_err(convert),
        Err(error) => Err(error),
    };
    let value = match result {
        Ok(value) => Some(value),
        Err(error) => {
            let reason = error.to_string();
            let later = keep_first(&first, error);
            fail(&reason);
            drop(later);
            // Tasks under way may still communicate.
            let _ = group.wait().await;
            None
        }
    };
    std::mem::forget(guard);
    value
}

/// Keeps the first error. Returns a later one, which drops under no lock.
fn keep_first<E>(first: &Mutex<Option<E>>, error: E) -> Option<E> {
    let mut first = first.lock();
    if first.is_some() { Some(error) } else { first.replace(error) }
}

/// Fails the other programs when dropped, which happens only if this one panics.
struct PanicGuard<'a>(&'a Fail);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        (self.0)("its main panicked");
    }
}
