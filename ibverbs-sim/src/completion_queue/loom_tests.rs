use loom::{model, thread};

use super::*;
use crate::{Device, DeviceConfig};

/// A thread that arms a queue which overruns is notified, even if the event of the overrun was
/// taken before.
#[test]
fn loom_nobody_sleeps_on_a_queue_that_has_overflowed() {
    model(|| {
        let context = Device::new(DeviceConfig::default()).unwrap().open();
        let channel = CompletionChannel::new();
        let queue = context.create_completion_queue(2, Some(&channel)).unwrap();
        let pusher = {
            let queue = queue.clone();
            thread::spawn(move || {
                let mut deferred = Deferred::default();
                for _ in 0..3 {
                    let entry = CompletionEntry::receive(WorkCompletion::default());
                    queue.core.push(entry, false, CompletionStatus::Success, &mut deferred);
                }
                deferred.run();
            })
        };
        let _ = channel.try_notified();
        queue.request_notify(false).unwrap();
        pusher.join().unwrap();
        assert!(channel.try_notified());
        assert!(queue.check().is_err());
    });
}
