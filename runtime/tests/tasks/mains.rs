//! Programs of several groups that end together.

use std::sync::{Arc, Mutex};

use futures::channel::oneshot;
use talpf_runtime::{Error, Mains, Runtime};

use crate::common;

/// Reasons of the failures of which the layer between the programs was notified.
#[derive(Clone, Default)]
struct Reasons(Arc<Mutex<Vec<String>>>);

impl Reasons {
    fn note(&self) -> impl Fn(&str) + Send + Sync + use<> {
        let reasons = self.clone();
        move |reason| reasons.0.lock().unwrap().push(reason.to_owned())
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Notes the reasons, and ends the wait of another program.
fn note_and_end(
    reasons: &Reasons,
    end: oneshot::Sender<()>,
) -> impl Fn(&str) + Send + Sync + use<> {
    let (note, end) = (reasons.note(), Mutex::new(Some(end)));
    move |reason| {
        note(reason);
        drop(end.lock().unwrap().take());
    }
}

fn mains() -> (Runtime, Mains<u32, String>, Reasons) {
    let mains = Mains::new(|error: Error| format!("runtime: {error}"));
    (common::runtime(2), mains, Reasons::default())
}

/// Starts a program that fails once its wait is ended.
fn start_waiting(
    runtime: &Runtime,
    mains: &mut Mains<u32, String>,
    reasons: &Reasons,
) -> oneshot::Sender<()> {
    let (end, ended) = oneshot::channel();
    let waits = async move {
        let _ = ended.await;
        Err("its peer has failed".to_owned())
    };
    mains.start(&runtime.group("waits", 0), waits, reasons.note()).unwrap();
    end
}

#[test]
fn results_have_the_order_of_the_starts_and_tasks_have_run() {
    let _watchdog = common::watchdog();
    let (runtime, mut mains, reasons) = mains();
    let ran = Arc::new(Mutex::new(0));
    for number in 0..3 {
        let (group, ran) = (runtime.group("a program", number), Arc::clone(&ran));
        let tasks = group.clone();
        let program = async move {
            let task = tasks.task("adds");
            task.spawn(move || *ran.lock().unwrap() += 1).map_err(|error| error.to_string())?;
            Ok(number)
        };
        mains.start(&group, program, reasons.note()).unwrap();
    }
    assert_eq!(mains.wait(&runtime), Ok(vec![0, 1, 2]));
    assert_eq!((*ran.lock().unwrap(), reasons.all().len()), (3, 0));
}

#[test]
fn a_failure_ends_the_others_and_wins_over_theirs() {
    let _watchdog = common::watchdog();
    let (runtime, mut mains, reasons) = mains();
    let end = start_waiting(&runtime, &mut mains, &reasons);
    let fails = async { Err("the cause".to_owned()) };
    let fail = note_and_end(&reasons, end);
    mains.start(&runtime.group("fails", 1), fails, fail).unwrap();
    assert_eq!(mains.wait(&runtime), Err("the cause".to_owned()));
    assert_eq!(reasons.all(), ["the cause", "its peer has failed"]);
}

#[test]
fn a_panic_ends_the_others_and_wins_over_their_failures() {
    let _watchdog = common::watchdog();
    let (runtime, mut mains, reasons) = mains();
    let end = start_waiting(&runtime, &mut mains, &reasons);
    let (panics, fail) = (runtime.group("panics", 1), note_and_end(&reasons, end));
    mains.start(&panics, async { panic!("on purpose") }, fail).unwrap();
    let error = mains.wait(&runtime).expect_err("a program panicked");
    assert!(error.starts_with("runtime: ") && error.contains("on purpose"), "{error}");
    assert_eq!(reasons.all()[0], "its main panicked");
}

#[test]
fn a_cancelled_group_is_a_failure() {
    let _watchdog = common::watchdog();
    let (runtime, mut mains, reasons) = mains();
    let group = runtime.group("cancels", 0);
    let cancels = group.clone();
    let program = async move {
        cancels.cancel("on purpose");
        Ok(0)
    };
    mains.start(&group, program, reasons.note()).unwrap();
    let error = mains.wait(&runtime).expect_err("the group was cancelled");
    assert!(error.contains("on purpose"), "{error}");
    assert_eq!(reasons.all()[0], "its tasks were cancelled: on purpose");
}
