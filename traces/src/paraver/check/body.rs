//! Checks of the records of a trace, one at a time: form, location, time, and rules of each kind.
//! A visitor gets the records without an error.

use super::fields::{self, in_range, shown};
use super::header::Header;
use super::labels::Labels;
use super::lines::Lines;
use super::record::{Communication, Record, Visitor};
use super::report::Log;
use super::rule::Rule;
use super::states::States;
use super::usage::LabelUsage;
use crate::State;
use crate::error::Result;
use crate::paraver::{EXACT_LIMIT, EventKind, LABEL_LIMIT, LOSSES};

/// Number of fields of a state, of an event with one value, and of a communication.
const STATE_FIELDS: usize = 8;
const EVENT_FIELDS: usize = 8;
const COMMUNICATION_FIELDS: usize = 15;

const TASK_ID: i128 = EventKind::TaskId.number() as i128;

/// Reads everything after the header.
pub(super) fn read(
    lines: &mut Lines,
    header: &Header,
    labels: Option<&Labels>,
    visitor: &mut dyn Visitor,
    log: &mut Log<'_>,
) -> Result<()> {
    let threads = header.objects.threads() as usize;
    let mut body = Body {
        header,
        communicators: 0,
        previous: 0,
        last: 0,
        states: States::new(threads),
        used: vec![false; threads],
        usage: labels.map(LabelUsage::new),
        running: vec![None; header.objects.cpus() as usize],
        tasks: vec![0; threads],
        values: Vec::new(),
        visitor,
    };
    let mut fields = Vec::new();
    let mut last_line = 1;
    while let Some((number, line)) = lines.next(log)? {
        last_line = number;
        body.line(line, number, &mut fields, log);
        body.visitor.line_ends(log.report)?;
    }
    if lines.cut_short {
        log.add(Rule::NoFinalNewline, last_line, "the last line has no end");
    }
    body.finish(last_line, log);
    Ok(())
}

struct Body<'a> {
    header: &'a Header,
    communicators: u64,
    /// First time of the previous record.
    previous: u64,
    /// Largest time of all records.
    last: u64,
    states: States,
    used: Vec<bool>,
    usage: Option<LabelUsage<'a>>,
    /// Thread that each cpu last ran a task of, and the end.
    running: Vec<Option<(usize, u64)>>,
    /// Task that each thread shows; 0 for none.
    tasks: Vec<i128>,
    /// Types and values of the event being read.
    values: Vec<(u32, i64)>,
    visitor: &'a mut dyn Visitor,
}

impl Body<'_> {
    fn line(&mut self, line: &[u8], number: u64, fields: &mut Vec<i128>, log: &mut Log<'_>) {
        match line {
            [] => log.add(Rule::BlankLine, number, "the line is blank"),
            [b'#', text @ ..] => {
                self.visitor.comment(text.trim_ascii());
                comment(text, number, log);
            }
            [b'c' | b'i', ..] => {
                self.visitor.communicator(line);
                self.communicator(line, number, fields, log);
            }
            [b'1', b':', ..] if fields::read(line, number, fields, log) => {
                self.state(fields, number, log);
            }
            [b'2', b':', ..] if fields::read(line, number, fields, log) => {
                self.event(fields, number, log);
            }
            [b'3', b':', ..] if fields::read(line, number, fields, log) => {
                self.communication(fields, number, log);
            }
            [b'1'..=b'3', b':', ..] => {}
            [b'4', b':', ..] => {
                log.add(Rule::GlobalCommunication, number, "global communications are skipped");
            }
            _ => {
                let text = format_args!("`{}` does not start like a record", shown(line));
                log.add(Rule::UnknownRecord, number, text);
            }
        }
    }

    /// Checks `1:cpu:application:task:thread:begin:end:state`.
    fn state(&mut self, fields: &[i128], line: u64, log: &mut Log<'_>) {
        if fields.len() != STATE_FIELDS {
            let text = format_args!("a state has {STATE_FIELDS} fields, this {}", fields.len());
            return log.add(Rule::FieldCount, line, text);
        }
        log.report.counts.records += 1;
        log.report.counts.states += 1;
        let thread = self.locate(&fields[1..5], true, line, log);
        let begin = self.time(fields[5], line, log);
        let end = self.time(fields[6], line, log);
        self.check_order(begin, line, log);
        if let (Some(thread), Some(begin), Some(end)) = (thread, begin, end) {
            self.states.add(thread, (begin, end), line, log);
            if fields[7] == i128::from(State::Running.number()) {
                self.run(fields[1], thread, (begin, end), line, log);
            }
        }
        if !in_range("state", fields[7], 0, u32::MAX.into(), line, log) {
            return;
        }
        if let Some(usage) = &mut self.usage {
            usage.state(fields[7], line, log);
        }
        if let (Some(row), Some(begin), Some(end)) = (thread, begin, end) {
            let [begin_ns, end_ns] = [begin, end].map(|time| self.header.to_ns(time));
            let (cpu, state) = (cpu(fields[1]), fields[7] as u32);
            self.visitor.record(Record::State { row, cpu, begin_ns, end_ns, state });
        }
    }

    /// Checks that a cpu runs one thread at a time.
    fn run(
        &mut self,
        cpu: i128,
        thread: usize,
        (begin, end): (u64, u64),
        line: u64,
        log: &mut Log<'_>,
    ) {
        let index = usize::try_from(cpu - 1).ok();
        let Some(running) = index.and_then(|index| self.running.get_mut(index)) else { return };
        match *running {
            Some((other, until)) if other != thread && begin < until => {
                let other = self.header.objects.name(other);
                let text = format_args!("cpu {cpu} runs at {begin}, and thread {other} to {until}");
                log.add(Rule::CpuRunsTwo, line, text);
            }
            _ => *running = Some((thread, end)),
        }
    }

    /// Checks `2:cpu:application:task:thread:time:type:value[:type:value ...]`.
    fn event(&mut self, fields: &[i128], line: u64, log: &mut Log<'_>) {
        if fields.len() < EVENT_FIELDS || !fields.len().is_multiple_of(2) {
            let text = format_args!(
                "an event has {EVENT_FIELDS} fields and two for each further value, this {}",
                fields.len()
            );
            return log.add(Rule::FieldCount, line, text);
        }
        log.report.counts.records += 1;
        log.report.counts.events += 1;
        // An event on the row of a task that does not run there has no cpu.
        let thread = self.locate(&fields[1..5], false, line, log);
        let time = self.time(fields[5], line, log);
        self.check_order(time, line, log);
        self.values.clear();
        for pair in fields[6..].chunks_exact(2) {
            log.report.counts.event_values += 1;
            if self.event_value(pair[0], pair[1], line, log) {
                self.values.push((pair[0] as u32, pair[1] as i64));
            }
            if let (Some(thread), true) = (thread, pair[0] == TASK_ID) {
                self.task(thread, pair[1], line, log);
            }
        }
        if let (Some(row), Some(time)) = (thread, time) {
            let (cpu, time_ns) = (cpu(fields[1]), self.header.to_ns(time));
            self.visitor.record(Record::Event { row, cpu, time_ns, values: &self.values });
        }
    }

    /// Checks that a task that begins on a thread does not run there.
    fn task(&mut self, thread: usize, task: i128, line: u64, log: &mut Log<'_>) {
        let before = std::mem::replace(&mut self.tasks[thread], task);
        if task != 0 && task == before {
            log.add(Rule::TaskBeginsTwice, line, format_args!("task {task} has not ended before"));
        }
    }

    /// Returns `true` if both numbers are of the size of their kinds.
    fn event_value(&mut self, kind: i128, value: i128, line: u64, log: &mut Log<'_>) -> bool {
        let fits = in_range("event type", kind, 0, u32::MAX.into(), line, log)
            && in_range("value", value, i64::MIN.into(), i64::MAX.into(), line, log);
        if !fits {
            return false;
        }
        if value.unsigned_abs() > u128::from(EXACT_LIMIT) {
            let text = format_args!("value {value} is rounded: beyond {EXACT_LIMIT}");
            log.add(Rule::ImpreciseValue, line, text);
        }
        if kind > i128::from(LABEL_LIMIT) {
            let text = format_args!("type {kind} cannot have a label: the limit is {LABEL_LIMIT}");
            log.add(Rule::TypeBeyondLabels, line, text);
        } else if let Some(usage) = &mut self.usage {
            usage.event(kind, value, line, log);
        }
        true
    }

    /// Checks `3:`, sender, logical and physical time, the same of the receiver, `size:tag`.
    fn communication(&mut self, fields: &[i128], line: u64, log: &mut Log<'_>) {
        if fields.len() != COMMUNICATION_FIELDS {
            let text = format_args!(
                "a communication has {COMMUNICATION_FIELDS} fields, this {}",
                fields.len()
            );
            return log.add(Rule::FieldCount, line, text);
        }
        log.report.counts.records += 1;
        log.report.counts.communications += 1;
        let sender = self.locate(&fields[1..5], true, line, log);
        let receiver = self.locate(&fields[7..11], true, line, log);
        let times = [5, 6, 11, 12].map(|field| self.time(fields[field], line, log));
        self.check_order(times[0], line, log);
        if let [Some(logical_send), Some(send), Some(logical_receive), Some(receive)] = times {
            if send < logical_send {
                let text =
                    format_args!("physical send {send} is before logical send {logical_send}");
                log.add(Rule::SendOrder, line, text);
            }
            if receive < send {
                let text = format_args!("physical receive {receive} is before send {send}");
                log.add(Rule::ReceiveBeforeSend, line, text);
            }
            if logical_receive < logical_send {
                let text =
                    format_args!("logical receive {logical_receive} is before send {logical_send}");
                log.add(Rule::LogicalReceiveBeforeSend, line, text);
            }
        }
        let fits = in_range("size", fields[13], 0, i64::MAX.into(), line, log)
            & in_range("tag", fields[14], i64::MIN.into(), i64::MAX.into(), line, log);
        if let (true, Some(sender), Some(receiver), [Some(a), Some(b), Some(c), Some(d)]) =
            (fits, sender, receiver, times)
        {
            let [logical_send_ns, send_ns, logical_receive_ns, receive_ns] =
                [a, b, c, d].map(|time| self.header.to_ns(time));
            let (bytes, tag) = (fields[13] as u64, fields[14] as i64);
            let communication = Communication {
                sender,
                sender_cpu: cpu(fields[1]),
                receiver,
                receiver_cpu: cpu(fields[7]),
                logical_send_ns,
                send_ns,
                receive_ns,
                logical_receive_ns,
                bytes,
                tag,
            };
            log.report.counts.control += u64::from(communication.control().is_some());
            self.visitor.record(Record::Communication(communication));
        }
    }

    /// Checks `c:application:id:members:task:task:...`; `i` between communicators.
    fn communicator(
        &mut self,
        line: &[u8],
        number: u64,
        fields: &mut Vec<i128>,
        log: &mut Log<'_>,
    ) {
        self.communicators += 1;
        let announced = self.header.communicators;
        if self.communicators > announced {
            let text = format_args!("the header announces {announced} communicators");
            log.add(Rule::UncountedCommunicator, number, text);
        }
        let list = line.get(2..).unwrap_or_default();
        if line.first() == Some(&b'i') || !fields::read(list, number, fields, log) {
            return;
        }
        let [application, _, members, tasks @ ..] = fields.as_slice() else {
            return log.add(Rule::CommunicatorForm, number, "the communicator has no members");
        };
        let existing = self.header.objects.tasks_of(*application).map_or(0, <[_]>::len);
        if *members != tasks.len() as i128 {
            let text = format_args!("{members} members are announced, {} listed", tasks.len());
            log.add(Rule::CommunicatorForm, number, text);
        }
        if let Some(task) = tasks.iter().find(|task| !(1..=existing as i128).contains(*task)) {
            let text = format_args!("task {task}; application {application} has {existing}");
            log.add(Rule::CommunicatorForm, number, text);
        }
    }

    fn finish(&self, last_line: u64, log: &mut Log<'_>) {
        let &Self { header, communicators, .. } = self;
        if communicators < header.communicators {
            let announced = header.communicators;
            let text = format_args!("{announced} communicators announced, {communicators} listed");
            log.add(Rule::CommunicatorCount, 1, text);
        }
        if log.report.counts.records == 0 {
            return log.add(Rule::NoRecords, last_line, "the trace has no records");
        }
        if self.last < header.duration {
            let (last, duration) = (self.last, header.duration);
            let text = format_args!("the duration is {duration}, the last record at {last}");
            log.add(Rule::EmptyTail, 1, text);
        } else {
            self.states.finish(header, &self.used, last_line, log);
        }
        let unused = self.used.iter().filter(|used| !**used).count();
        if let Some(first) = self.used.iter().position(|used| !used) {
            let (first, threads) = (header.objects.name(first), self.used.len());
            let text = format_args!("{unused} of {threads} threads have no record, as {first}");
            log.add(Rule::UnusedThread, 1, text);
        }
    }

    fn locate(
        &mut self,
        location: &[i128],
        needs_cpu: bool,
        line: u64,
        log: &mut Log<'_>,
    ) -> Option<usize> {
        let thread = self.header.objects.locate(location, needs_cpu, line, log)?;
        self.used[thread] = true;
        Some(thread)
    }

    fn time(&mut self, time: i128, line: u64, log: &mut Log<'_>) -> Option<u64> {
        if !in_range("time", time, 0, i64::MAX.into(), line, log) {
            return None;
        }
        let (time, duration) = (u64::try_from(time).ok()?, self.header.duration);
        if time > duration {
            let text = format_args!("time {time} is beyond the duration, {duration}");
            log.add(Rule::TimeAfterEnd, line, text);
        }
        self.last = self.last.max(time);
        Some(time)
    }

    fn check_order(&mut self, time: Option<u64>, line: u64, log: &mut Log<'_>) {
        let Some(time) = time else { return };
        if time < self.previous {
            let previous = self.previous;
            let text = format_args!("begins at {time}, the record above at {previous}");
            log.add(Rule::Unsorted, line, text);
        }
        self.previous = time;
    }
}

/// Returns the number of a cpu; 0 for a number that is none.
fn cpu(number: i128) -> u32 {
    u32::try_from(number).unwrap_or_default()
}

/// Reports a comment that says that the trace lacks something.
fn comment(text: &[u8], line: u64, log: &mut Log<'_>) {
    let says = |loss: &&str| text.windows(loss.len()).any(|part| part == loss.as_bytes());
    if LOSSES.iter().any(says) {
        log.add(Rule::Incomplete, line, shown(text.trim_ascii()));
    }
}
