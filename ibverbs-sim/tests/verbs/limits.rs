//! Every limit of the device can be reached and not exceeded.

use crate::common::*;
use ibverbs_sim::*;

fn limited(adjust: impl Fn(&mut DeviceAttributes)) -> Device {
    let mut attributes = DeviceAttributes::default();
    adjust(&mut attributes);
    Device::new(DeviceConfig { attributes, ..DeviceConfig::default() }).unwrap()
}

fn exceeds<T>(result: Result<T>, expected: &str, over: u64) {
    match result.err() {
        Some(Error::LimitExceeded { what, requested, limit }) => {
            assert_eq!((what, requested, limit), (expected, over, over - 1));
        }
        other => panic!("{expected}: {other:?}"),
    }
}

#[test]
fn completion_queue_entries() {
    let context = limited(|limits| limits.max_cqe = 8).open();
    assert_eq!(context.create_completion_queue(8, None).unwrap().capacity(), 8);
    assert_eq!(context.create_completion_queue(5, None).unwrap().capacity(), 8);
    exceeds(context.create_completion_queue(9, None), "max_cqe", 9);
    let none = context.create_completion_queue(0, None);
    assert_eq!(none.unwrap_err(), Error::Zero { what: "max_cqe" });
}

#[test]
fn queue_pair_sizes() {
    let device = limited(|limits| {
        (limits.max_qp_wr, limits.max_sge, limits.max_inline_data) = (300, 5, 100);
    });
    let end = End::new(&device, |_| {});
    let create = |adjust: &dyn Fn(&mut QueuePairInit)| {
        let mut init = QueuePairInit::new(&end.send_cq, &end.recv_cq);
        adjust(&mut init);
        end.domain.create_queue_pair(&init)
    };
    create(&|init| (init.max_send_wr, init.max_recv_wr) = (300, 300)).unwrap();
    exceeds(create(&|init| init.max_send_wr = 301), "max_send_wr", 301);
    exceeds(create(&|init| init.max_recv_wr = 301), "max_recv_wr", 301);
    create(&|init| (init.max_send_sge, init.max_recv_sge) = (5, 5)).unwrap();
    exceeds(create(&|init| init.max_send_sge = 6), "max_send_sge", 6);
    exceeds(create(&|init| init.max_recv_sge = 6), "max_recv_sge", 6);
    create(&|init| init.max_inline_data = 100).unwrap();
    exceeds(create(&|init| init.max_inline_data = 101), "max_inline_data", 101);
    let none = create(&|init| init.max_send_wr = 0);
    assert_eq!(none.unwrap_err(), Error::Zero { what: "max_send_wr" });
}

#[test]
fn receive_queue_slots() {
    let device = device();
    let (a, b) = (End::new(&device, |_| {}), End::new(&device, |init| init.max_recv_wr = 4));
    connect(&a, &b, &Connection::default());
    assert_eq!(b.queue_pair.max_recv_wr(), 4);
    let receive = ReceiveWorkRequest { wr_id: 0, scatter: &[] };
    let full = |index| Err(PostError { index, reason: Error::QueueFull { capacity: 4 } });
    assert_eq!(b.queue_pair.post_receive(&[receive; 5]), full(4));
    assert_eq!(b.queue_pair.post_receive(&[receive]), full(0));
    a.post(&[send(1)]);
    b.queue_pair.post_receive(&[receive]).unwrap();
}

#[test]
fn shared_receive_queue_sizes() {
    let domain = limited(|limits| (limits.max_srq_wr, limits.max_sge) = (64, 3))
        .open()
        .allocate_protection_domain();
    let create = |max_wr, max_sge| {
        domain.create_shared_receive_queue(&SharedReceiveQueueInit { max_wr, max_sge })
    };
    assert_eq!(create(64, 3).unwrap().capacity(), 64);
    exceeds(create(65, 3), "max_srq_wr", 65);
    exceeds(create(64, 4), "max_sge", 4);
    assert_eq!(create(0, 1).unwrap_err(), Error::Zero { what: "max_srq_wr" });
}

#[test]
fn queue_pairs_and_regions_at_one_time() {
    let device = limited(|limits| (limits.max_qp, limits.max_mr, limits.max_mr_size) = (2, 2, 64));
    let first = End::new(&device, |_| {});
    let second = End::new(&device, |_| {});
    let init = QueuePairInit::new(&first.send_cq, &first.recv_cq);
    exceeds(first.domain.create_queue_pair(&init), "max_qp", 3);
    drop(second.queue_pair);
    first.domain.create_queue_pair(&init).unwrap();

    let memory = std::ptr::NonNull::<u64>::dangling().cast();
    let register = |length| register(&first.domain, memory, length, Access::NONE);
    let held = (first.buffer(64), register(0).unwrap());
    exceeds(register(0), "max_mr", 3);
    drop(held.1);
    register(0).unwrap();
    exceeds(register(65), "max_mr_size", 65);
}

#[test]
fn retries_and_outstanding_reads() {
    let device = limited(|limits| limits.max_rd_atomic = 3);
    let end = End::new(&device, |_| {});
    let good = Connection { max_rd_atomic: 3, retry_count: 7, ..Connection::default() };
    let connect = |connection: &Connection| {
        let connected = end.queue_pair.connect(end.queue_pair.number(), connection);
        end.go_to(QueuePairState::Reset);
        connected
    };
    connect(&good).unwrap();
    exceeds(connect(&Connection { max_rd_atomic: 4, ..good }), "max_dest_rd_atomic", 4);
    exceeds(connect(&Connection { retry_count: 8, ..good }), "retry_count", 8);
    exceeds(connect(&Connection { rnr_retry: 8, ..good }), "rnr_retry", 8);
}

#[test]
fn what_no_device_can_do() {
    let device = |adjust: fn(&mut DeviceAttributes)| {
        let mut attributes = DeviceAttributes::default();
        adjust(&mut attributes);
        Device::new(DeviceConfig { attributes, ..DeviceConfig::default() })
    };
    device(|limits| limits.max_sge = 16).unwrap();
    exceeds(device(|limits| limits.max_sge = 17), "max_sge", 17);
    device(|limits| limits.max_message_size = 1 << 31).unwrap();
    exceeds(
        device(|limits| limits.max_message_size = (1 << 31) + 1),
        "max_message_size",
        (1 << 31) + 1,
    );
}

#[test]
fn objects_of_other_contexts_do_not_fit() {
    let device = device();
    let (a, b) = (End::new(&device, |_| {}), End::new(&device, |_| {}));
    let foreign = |init: &QueuePairInit, what| {
        let refused = a.domain.create_queue_pair(init).unwrap_err();
        assert_eq!(refused, Error::ForeignObject { what, owner: "context" });
    };
    foreign(&QueuePairInit::new(&b.send_cq, &a.recv_cq), "send_cq");
    foreign(&QueuePairInit::new(&a.send_cq, &b.recv_cq), "recv_cq");
    let srq = b.domain.create_shared_receive_queue(&SharedReceiveQueueInit::default()).unwrap();
    let init = QueuePairInit { srq: Some(srq), ..QueuePairInit::new(&a.send_cq, &a.recv_cq) };
    foreign(&init, "srq");
}

#[test]
fn ports_are_counted_from_one() {
    let context = device().open();
    assert_eq!(context.query_port(0).unwrap_err(), Error::NoSuchPort { port: 0, ports: 1 });
    assert_eq!(context.query_port(1).unwrap().state, PortState::Active);
    assert_eq!(context.query_port(2).unwrap_err(), Error::NoSuchPort { port: 2, ports: 1 });
}
