//! Nested tasks that await the results of their children, and a cut-off.
//!
//! Every task of the recursion spawns two children and suspends until both have returned. From
//! `CUT_OFF` on the tasks are final: there the rest is a call of a function and no task.
//! Run it with `cargo run --release -p talpf-runtime --example fibonacci`.

use talpf_runtime::{Children, Config, Error, Runtime};

const NUMBER: u64 = 27;
const CUT_OFF: u64 = 15;

pub(crate) fn main() -> Result<(), Error> {
    let runtime = Runtime::new(Config::default())?;
    let root = runtime.task("fibonacci").run_async(|| fibonacci(NUMBER))?;
    let number = runtime.block_on(root)???;
    assert_eq!(number, serial(NUMBER));
    println!("Fibonacci number {NUMBER} is {number}");
    Ok(())
}

/// The body of a task.
#[allow(clippy::manual_async_fn, reason = "of a future that spawns itself `Send` has to be said")]
fn fibonacci(number: u64) -> impl Future<Output = Result<u64, Error>> + Send {
    async move {
        let children = Children::of_current_task()?;
        if number < 2 || children.is_final() {
            return Ok(serial(number));
        }
        let child = |number| {
            let task = children.task("fibonacci").final_if(number <= CUT_OFF);
            task.run_async(move || fibonacci(number))
        };
        let (one, other) = (child(number - 1)?, child(number - 2)?);
        Ok(one.await?? + other.await??)
    }
}

fn serial(number: u64) -> u64 {
    if number < 2 { number } else { serial(number - 1) + serial(number - 2) }
}
