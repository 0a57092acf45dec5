//! Work of a thread outside the runtime, and the three ways in which tasks wait for it.
//!
//! A region is in use until the thread drops its guard, a task is complete once the thread drops
//! its `PendingEvent`, and a task begins once the thread drops what holds it back. No worker waits
//! in any of them. Run it with `cargo run -p talpf-runtime --example events`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use talpf_runtime::{Array, Config, Error, PendingEvent, Runtime};

/// A command for the device, which carries out one after another.
type Command = Box<dyn FnOnce() + Send>;

const BLOCKS: usize = 4;

pub(crate) fn main() -> Result<(), Error> {
    let runtime = Runtime::new(Config::default())?;
    let (device, commands) = mpsc::channel::<Command>();
    let thread = thread::spawn(move || {
        for command in commands {
            thread::sleep(Duration::from_millis(5));
            command();
        }
    });

    let blocks = Array::new(&runtime, vec![0u64; BLOCKS], 1)?;
    let written = Arc::new(AtomicU64::new(0));
    for number in 0..BLOCKS {
        // The guard goes to the device: whatever uses the block waits until it drops there.
        let load = device.clone();
        runtime.task("load").output(&blocks.tile(number)).spawn(move |mut block| {
            submit(&load, move || block[0] = 10 + number as u64);
        })?;
        // This task begins once the device has begun to accept writes, which it asks for here.
        let (prepare, store, total) = (device.clone(), device.clone(), Arc::clone(&written));
        let task = runtime.task("store").input(&blocks.tile(number)).on_ready(move |ready| {
            let held = ready.hold_back();
            submit(&prepare, move || drop(held));
        });
        // The block is copied and free at once; a wait for the group includes the event.
        task.spawn(move |block| {
            let event = PendingEvent::of_current_task().expect("called in a task");
            let value = block[0];
            submit(&store, move || {
                total.fetch_add(value, Ordering::Relaxed);
                drop(event);
            });
        })?;
    }
    runtime.wait_blocking()?;

    let total = written.load(Ordering::Relaxed);
    assert_eq!(total, (10..10 + BLOCKS as u64).sum());
    println!("the device has loaded and stored {BLOCKS} blocks, which add up to {total}");
    drop(device);
    thread.join().expect("the device ends with its commands");
    Ok(())
}

fn submit(device: &Sender<Command>, command: impl FnOnce() + Send + 'static) {
    device.send(Box::new(command)).expect("the device takes commands until the end");
}
