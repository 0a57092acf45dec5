//! What a queue pair whose peer is in another process adds: requests become packets, and wait for
//! their answers as others wait for a receive.
//!
//! The holder of the gate makes the packet of a request and stalls; the packet leaves once the gate
//! is free. Whoever delivers the answer leaves it in `answer` and resumes the queue pair; the
//! request is then attempted again and finds it. A resume without an answer changes nothing.
//!
//! Two sendings of one request may overtake each other, between the gate and the wire: the answer
//! to the last one counts, and the peer takes the other for a repetition, as its sequence number
//! says.
//!
//! The other end keeps no request for which it has no receive. It says so, lists itself for the
//! next receive and looks once more, in this order: so what it says about the receive comes after
//! what it says about the lack of it.

use talpf_primitives::{AtomicBool, AtomicU32, Mutex, Ordering};

use crate::{
    CompletionStatus, SendFlags, SendWorkRequest,
    aftermath::Aftermath,
    link::Setback,
    queue_pair::{Local, QueuePairCore, requester::Requester, retry::Retry},
    wire::{Answer, Departure, Packet, Request, Verdict},
};

/// The number of no process.
const HERE: u32 = u32::MAX;

/// What is shared with the thread that delivers.
pub(crate) struct Elsewhere {
    /// Where the peer is; `HERE` if it is in this process, or if there is none.
    process: AtomicU32,
    /// The number of the next request, wrapping. A reset skips one. Never set back, so that late
    /// answers match no later request.
    serial: AtomicU32,
    answer: Mutex<Option<KeptAnswer>>,
    /// The peer waits to be told of a receive.
    promised: AtomicBool,
}

struct KeptAnswer {
    serial: u32,
    verdict: Verdict,
    payload: Vec<u8>,
}

impl Default for Elsewhere {
    fn default() -> Self {
        Self {
            process: AtomicU32::new(HERE),
            serial: AtomicU32::new(0),
            answer: Mutex::default(),
            promised: AtomicBool::new(false),
        }
    }
}

impl Elsewhere {
    /// The process of the peer, if it is another one.
    pub(crate) fn process(&self) -> Option<u32> {
        Some(self.process.load(Ordering::SeqCst)).filter(|process| *process != HERE)
    }

    pub(crate) fn set_process(&self, process: Option<u32>) {
        self.process.store(process.unwrap_or(HERE), Ordering::SeqCst);
        self.promised.store(false, Ordering::SeqCst);
        if process.is_none() {
            // A request that has not left yet stays.
            self.serial.fetch_add(1, Ordering::SeqCst);
        }
        self.answer.lock().take();
    }

    /// Returns whether a request is the last that was sent since the last reset.
    pub(crate) fn is_last(&self, serial: u32) -> bool {
        self.serial.load(Ordering::SeqCst) == serial.wrapping_add(1)
    }

    /// Keeps an answer that has arrived, if it is to the request that may be under way. Of a payload
    /// over `longest`, which fits no request, no more is kept than shows that.
    pub(crate) fn keep_answer(&self, answer: &Answer<'_>, longest: u32) {
        let &Answer { serial, verdict, payload, .. } = answer;
        if !self.is_last(serial) {
            return;
        }
        let payload = payload.get(..=longest as usize).unwrap_or(payload);
        let kept = KeptAnswer { serial, verdict, payload: payload.to_vec() };
        *self.answer.lock() = Some(kept);
    }
}

impl QueuePairCore {
    /// Sends a request to the peer in `process`, or takes its answer. Gives its length once it was
    /// carried out.
    #[cold]
    pub(super) fn attempt_elsewhere(
        &self,
        process: u32,
        requester: &mut Requester,
        request: &SendWorkRequest<'_>,
        local: Local<'_>,
        aftermath: &mut Aftermath,
    ) -> Result<u64, Setback> {
        let Some(port) = &self.context.device.port else {
            return Err(Setback::NoAnswer);
        };
        // Before the look at the answer, which may be the last that the process has sent.
        let is_lost = port.is_known_lost(process);
        let answer = self.elsewhere.answer.lock().take();
        let answer = answer.filter(|answer| requester.under_way == Some(answer.serial));
        if let Some(answer) = answer {
            requester.under_way = None;
            requester.answering = Retry::default();
            return settle(&answer, request, local);
        }
        if is_lost {
            return Err(Setback::Refused(CompletionStatus::RetryExceeded));
        }
        let now_ns = self.context.timers.now_ns();
        if requester.under_way.is_none() || requester.answering.is_overdue(now_ns) {
            requester.under_way =
                Some(self.send_request(process, requester, request, local, aftermath));
        }
        Err(Setback::NoAnswer)
    }

    fn send_request(
        &self,
        process: u32,
        requester: &Requester,
        request: &SendWorkRequest<'_>,
        local: Local<'_>,
        aftermath: &mut Aftermath,
    ) -> u32 {
        let serial = self.elsewhere.serial.fetch_add(1, Ordering::SeqCst);
        let mut gathered = Vec::new();
        let payload = match local {
            Local::Inline(bytes) => bytes,
            _ if request.operation.brings_back() => &[],
            _ => {
                local.gather_into(&mut gathered);
                &gathered
            }
        };
        let packet = Request {
            to: requester.remote,
            from: self.number,
            psn: requester.next_psn,
            serial,
            solicited: request.flags.contains(SendFlags::SOLICITED),
            operation: request.operation,
            length: local.len(),
            payload,
        };
        self.depart(process, Some(serial), Packet::Request(packet), aftermath);
        serial
    }

    /// Has a packet leave once no gate is held.
    fn depart(
        &self,
        process: u32,
        serial: Option<u32>,
        packet: Packet<'_>,
        aftermath: &mut Aftermath,
    ) {
        if let Some(this) = self.this.upgrade() {
            aftermath.depart(Departure::new(this, process, serial, packet));
        }
    }

    /// The peer was told that there is no receive: it is told of the next one.
    #[cold]
    pub(crate) fn promise_ready(&self, aftermath: &mut Aftermath) {
        self.elsewhere.promised.store(true, Ordering::SeqCst);
        self.receives.wait(&self.this);
        if !self.receives.is_empty() {
            self.receive_posted(aftermath);
        }
    }

    /// A receive was posted for which this end is listed: it waits for it to send, or its peer
    /// elsewhere does.
    #[cold]
    pub(crate) fn receive_posted(&self, aftermath: &mut Aftermath) {
        let promised = self.elsewhere.promised.swap(false, Ordering::SeqCst);
        if let (true, Some(process)) = (promised, self.elsewhere.process()) {
            let to = crate::QueuePairNumber(self.responder.remote.load(Ordering::Relaxed));
            let ready = Packet::Ready { to, from: self.number };
            self.depart(process, None, ready, aftermath);
        }
        self.resume(aftermath);
    }
}

/// Does at this end what an answer brings.
fn settle(
    answer: &KeptAnswer,
    request: &SendWorkRequest<'_>,
    local: Local<'_>,
) -> Result<u64, Setback> {
    let original = match answer.verdict {
        Verdict::Done { original } => original,
        Verdict::NotReady { wait_ns } => return Err(Setback::ReceiverNotReady { wait_ns }),
        Verdict::Refused(status) => return Err(Setback::Refused(status)),
    };
    if let Local::Target(pieces) = local {
        if request.operation.is_atomic() {
            pieces.fill_bytes(&original.to_ne_bytes());
        } else if answer.payload.len() as u64 == local.len() {
            pieces.fill_bytes(&answer.payload);
        } else {
            return Err(Setback::Refused(CompletionStatus::RemoteOperation));
        }
    }
    Ok(local.len())
}
