//! Every mistake that Paraver takes badly, made once in a clean trace: the
//! linter names the rule, the file, the line and the value.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;

use crate::support::sample::File as Part;
use crate::support::sample::{changed, sample};
use Part::{Pcf, Prv, Row};
use flate2::Compression;
use flate2::write::GzEncoder;
use talpf_traces::paraver::{Report, Rule, Severity, check};

/// Change to the sample, and the first finding of the rule: line and text.
struct Pitfall {
    file: Part,
    old: &'static str,
    new: &'static str,
    rule: Rule,
    line: u64,
    text: &'static str,
}

const fn pitfall(
    file: Part,
    old: &'static str,
    new: &'static str,
    rule: Rule,
    line: u64,
    text: &'static str,
) -> Pitfall {
    Pitfall { file, old, new, rule, line, text }
}

const STATE: &str = "1:1:1:1:1:0:40:1\n";
const EVENT: &str = "2:1:1:1:1:10:10:7:11:1";
const MESSAGE: &str = "3:1:1:1:1:20:25:4:1:2:1:60:50:4096:1";

#[rustfmt::skip]
const PITFALLS: &[Pitfall] = &[
    // The files as such.
    pitfall(Prv, "#Paraver (", "\u{feff}#Paraver (", Rule::ByteOrderMark, 1, "byte order mark"),
    pitfall(Pcf, "DEFAULT_OPTIONS", "\u{feff}DEFAULT_OPTIONS", Rule::ByteOrderMark, 1, "byte order mark"),
    pitfall(Prv, "\n", "\r\n", Rule::CarriageReturn, 1, "carriage return"),
    pitfall(Pcf, "\n", "\r\n", Rule::LabelCarriageReturn, 1, "carriage return"),
    pitfall(Row, "\n", "\r\n", Rule::LabelCarriageReturn, 1, "carriage return"),
    pitfall(Prv, STATE, "1:1:1:1:1:0:40:1\n\n", Rule::BlankLine, 5, "blank"),
    pitfall(Prv, "10:0:11:0\n", "10:0:11:0", Rule::NoFinalNewline, 9, "no end"),

    // The header.
    pitfall(Prv, "#Paraver ", "#PARAVER ", Rule::NotParaver, 1, "`#PARAVER`"),
    pitfall(Prv, "#Paraver (", "\u{1f}\u{8b}", Rule::NotParaver, 1, "the first word"),
    pitfall(Prv, "(21/11/2026 at 02:40)", "21/11/2026", Rule::HeaderForm, 1, "the date"),
    pitfall(Prv, "02:40):", "02:40:", Rule::HeaderForm, 1, "expected"),
    pitfall(Prv, ":00000000000000000100_ns", ":", Rule::HeaderForm, 1, "the duration"),
    pitfall(Prv, "2(2,2)", "3(2,2)", Rule::HeaderForm, 1, "3 nodes are announced, 2 are listed"),
    pitfall(Prv, "2(1:1,1:2)", "3(1:1,1:2)", Rule::HeaderForm, 1, "3 tasks are announced, 2 are listed"),
    pitfall(Prv, "2(1:1,1:2)", "2(1,1:2)", Rule::HeaderForm, 1, "`:` before the node of a task"),
    pitfall(Prv, "2(1:1,1:2)", "2(0:1,0:2)", Rule::HeaderForm, 1, "no threads"),
    pitfall(Prv, "2(1:1,1:2),1", "2(1:1,1:2),1x", Rule::HeaderForm, 1, "the end of the line at `x`"),
    pitfall(Prv, "100_ns", "100", Rule::MissingTimeUnit, 1, "no unit"),
    pitfall(Prv, "100_ns", "100_s", Rule::UnknownTimeUnit, 1, "`_s`"),
    pitfall(Prv, "100_ns", "100.0_ns", Rule::UnknownTimeUnit, 1, "`.0_ns`"),
    pitfall(Prv, "2(1:1,1:2)", "2(65535:1,1:2)", Rule::TooManyObjects, 1, "65536 threads; Paraver takes 65535"),
    pitfall(Prv, "2(2,2)", "2(65535,1)", Rule::TooManyObjects, 1, "65536 cpus"),
    pitfall(Prv, "2(2,2)", "65536", Rule::TooManyObjects, 1, "65536 cpus"),
    pitfall(Prv, "2(1:1,1:2)", "2(1:1,1:3)", Rule::NodeOutOfRange, 1, "node 3; nodes are 1 to 2"),
    pitfall(Prv, "2(1:1,1:2)", "2(1:0,1:2)", Rule::NodeOutOfRange, 1, "node 0; nodes are 1 to 2"),
    pitfall(Prv, "1:2),1", "1:2),2", Rule::CommunicatorCount, 1, "2 communicators announced, 1 listed"),
    pitfall(Prv, "1:2),1", "1:2)", Rule::UncountedCommunicator, 2, "announces 0"),
    pitfall(Prv, "c:1:1:2:1:2", "c:1:1:2:1", Rule::CommunicatorForm, 2, "2 members are announced, 1 listed"),
    pitfall(Prv, "c:1:1:2:1:2", "c:1:1:2:1:3", Rule::CommunicatorForm, 2, "task 3; application 1 has 2"),
    pitfall(Prv, "c:1:1:2:1:2", "c:", Rule::FieldCount, 2, "field 1 is ``"),

    // Comments.
    pitfall(Prv, "# a comment", "# worker 0: 5 records dropped, its stream was full at 3", Rule::Incomplete, 3, "5 records dropped"),
    pitfall(Prv, "# a comment", "# 1 streams were still open: their last records may be missing", Rule::Incomplete, 3, "still open"),

    // The form of records.
    pitfall(Prv, STATE, "1:1:1:1:1:0:40:1\n5:1\n", Rule::UnknownRecord, 5, "`5:1`"),
    pitfall(Prv, STATE, "1:1:1:1:1:0:40:1\n11:1\n", Rule::UnknownRecord, 5, "`11:1`"),
    pitfall(Prv, STATE, "1:1:1:1:1:0:40:1\n4:1:1\n", Rule::GlobalCommunication, 5, "skipped"),
    pitfall(Prv, ":10:7:11:1", ":10:7:11", Rule::FieldCount, 6, "this 9"),
    pitfall(Prv, ":10:7:11:1", "", Rule::FieldCount, 6, "this 6"),
    pitfall(Prv, STATE, "1:1:1:1:1:0:40\n", Rule::FieldCount, 4, "a state has 8 fields, this 7"),
    pitfall(Prv, ":4096:1", ":4096", Rule::FieldCount, 7, "a communication has 15 fields, this 14"),
    pitfall(Prv, ":10:7:11:1", ":10::11:1", Rule::FieldCount, 6, "field 8 is ``"),
    pitfall(Prv, ":10:7:11:1", ":10:7:11:1:", Rule::TrailingColon, 6, "ends in a colon"),
    pitfall(Prv, ":10:7:11:1", ": 10:7:11:1", Rule::BlankInRecord, 6, "field 7 is ` 10`"),
    pitfall(Prv, "1:1:10:10:7", "1:1:10.5:10:7", Rule::FloatNumber, 6, "field 6 is `10.5`"),
    pitfall(Prv, ":10:7:11:1", ":10:0x7:11:1", Rule::NotInteger, 6, "field 8 is `0x7`"),
    pitfall(Prv, ":10:7:", ":4294967296:7:", Rule::NumberRange, 6, "event type 4294967296"),
    pitfall(Prv, ":10:7:", ":10:9223372036854775808:", Rule::NumberRange, 6, "value 9223372036854775808"),
    pitfall(Prv, ":10:7:", ":10:-9223372036854775809:", Rule::NumberRange, 6, "value -9223372036854775809"),
    pitfall(Prv, STATE, "1:1:1:1:1:0:40:4294967296\n", Rule::NumberRange, 4, "state 4294967296"),
    pitfall(Prv, STATE, "1:1:1:1:1:-1:40:1\n", Rule::NumberRange, 4, "time -1"),
    pitfall(Prv, ":4096:1", ":9223372036854775808:1", Rule::NumberRange, 7, "size 9223372036854775808"),
    pitfall(Prv, ":4096:1", ":-1:1", Rule::NumberRange, 7, "size -1"),
    pitfall(Prv, ":4096:1", ":1:9223372036854775808", Rule::NumberRange, 7, "tag 9223372036854775808"),

    // Where records are.
    pitfall(Prv, EVENT, "2:1:2:1:1:10:10:7:11:1", Rule::ApplicationOutOfRange, 6, "application 2; there are 1"),
    pitfall(Prv, EVENT, "2:1:0:1:1:10:10:7:11:1", Rule::ApplicationOutOfRange, 6, "application 0"),
    pitfall(Prv, EVENT, "2:1:1:3:1:10:10:7:11:1", Rule::TaskOutOfRange, 6, "task 3; application 1 has 2"),
    pitfall(Prv, EVENT, "2:1:1:0:1:10:10:7:11:1", Rule::TaskOutOfRange, 6, "task 0"),
    pitfall(Prv, EVENT, "2:1:1:1:2:10:10:7:11:1", Rule::ThreadOutOfRange, 6, "thread 2; task 1.1 has 1"),
    pitfall(Prv, EVENT, "2:1:1:1:0:10:10:7:11:1", Rule::ThreadOutOfRange, 6, "thread 0"),
    pitfall(Prv, ":4:1:2:1:", ":4:1:2:2:", Rule::ThreadOutOfRange, 7, "thread 2; task 1.2 has 1"),
    pitfall(Prv, EVENT, "2:5:1:1:1:10:10:7:11:1", Rule::CpuOutOfRange, 6, "cpu 5; there are 4"),
    pitfall(Prv, EVENT, "2:-1:1:1:1:10:10:7:11:1", Rule::CpuOutOfRange, 6, "cpu -1"),
    pitfall(Prv, ":4:1:2:1:", ":1:1:2:1:", Rule::CpuOfOtherNode, 7, "cpu 1; node 2 of the task has 3 to 4"),
    pitfall(Prv, EVENT, "2:3:1:1:1:10:10:7:11:1", Rule::CpuOfOtherNode, 6, "cpu 3; node 1 of the task has 1 to 2"),
    pitfall(Prv, "2(1:1,1:2)", "2(1:2,1:2)", Rule::CpuOfOtherNode, 4, "cpu 1; node 2"),
    pitfall(Prv, "2(2,2)", "0", Rule::CpuWithoutNodes, 4, "cpu 1; without nodes it must be 0"),
    pitfall(Prv, "1:3:1:2:1:0:100:0", "1:3:1:2:1:0:10:0\n1:1:1:2:1:10:100:1", Rule::CpuRunsTwo, 6, "cpu 1 runs at 10, and thread 1.1.1 to 40"),
    pitfall(Prv, "2:1:1:1:1:40:10:0:11:0", "2:1:1:1:1:40:10:7:11:0", Rule::TaskBeginsTwice, 9, "task 7 has not ended before"),
    pitfall(Prv, STATE, "1:0:1:1:1:0:40:1\n", Rule::NoCpu, 4, "cpu 0"),
    pitfall(Prv, MESSAGE, "3:1:1:1:1:20:25:0:1:2:1:60:50:4096:1", Rule::NoCpu, 7, "cpu 0"),

    // Times.
    pitfall(Prv, "0100_ns", "0050_ns", Rule::TimeAfterEnd, 5, "time 100 is beyond the duration, 50"),
    pitfall(Prv, "0100_ns", "0000_ns", Rule::TimeAfterEnd, 4, "time 40 is beyond the duration, 0"),
    pitfall(Prv, ":60:50:4096", ":101:50:4096", Rule::TimeAfterEnd, 7, "time 101"),
    pitfall(Prv, "0100_ns", "0101_ns", Rule::EmptyTail, 1, "the duration is 101, the last record at 100"),
    pitfall(Prv, "000000100_ns", "009007199254740993_ns", Rule::ImpreciseTime, 1, "9007199254740993 exceeds"),
    pitfall(Prv, "1:3:1:2:1:0:100:0\n2:1:1:1:1:10:10:7:11:1", "2:1:1:1:1:10:10:7:11:1\n1:3:1:2:1:0:100:0", Rule::Unsorted, 6, "begins at 0, the record above at 10"),
    pitfall(Prv, "3:1:1:1:1:20:25", "3:1:1:1:1:9:25", Rule::Unsorted, 7, "begins at 9, the record above at 10"),

    // What each kind of record promises.
    pitfall(Prv, "1:2:1:1:1:40:100:0", "1:2:1:1:1:40:39:0", Rule::StateReversed, 8, "ends at 39, before it begins at 40"),
    pitfall(Prv, STATE, "1:1:1:1:1:0:41:1\n", Rule::StateOverlap, 8, "begins at 40, before 41"),
    pitfall(Prv, STATE, "1:1:1:1:1:0:39:1\n", Rule::StateGap, 8, "no state from 39 to 40"),
    pitfall(Prv, STATE, "1:1:1:1:1:1:40:1\n", Rule::StateGap, 4, "no state from 0 to 1"),
    pitfall(Prv, "1:2:1:1:1:40:100:0", "1:2:1:1:1:40:99:0", Rule::StateGap, 9, "thread 1.1.1 has no state from 99 to the end, 100"),
    pitfall(Prv, MESSAGE, "3:1:1:1:1:25:20:4:1:2:1:60:50:4096:1", Rule::SendOrder, 7, "physical send 20 is before logical send 25"),
    pitfall(Prv, MESSAGE, "3:1:1:1:1:20:25:4:1:2:1:60:24:4096:1", Rule::ReceiveBeforeSend, 7, "physical receive 24 is before send 25"),
    pitfall(Prv, MESSAGE, "3:1:1:1:1:20:25:4:1:2:1:19:50:4096:1", Rule::LogicalReceiveBeforeSend, 7, "logical receive 19 is before send 20"),
    pitfall(Prv, ":10:7:", ":2147483648:7:", Rule::TypeBeyondLabels, 6, "type 2147483648"),
    pitfall(Prv, ":10:7:", ":10:9007199254740993:", Rule::ImpreciseValue, 6, "value 9007199254740993 is rounded"),

    // Labels.
    pitfall(Pcf, "VALUES", "values", Rule::UnknownSection, 20, "`values`"),
    pitfall(Pcf, "STATES\n", "states\n", Rule::UnknownSection, 7, "`states`"),
    pitfall(Pcf, "STATES_COLOR", "STATES_COLOUR", Rule::UnknownSection, 11, "`STATES_COLOUR`"),
    pitfall(Pcf, "0 11 Task type", "11 Task type", Rule::MissingColour, 19, "`11 Task type`"),
    pitfall(Pcf, "0 11 Task type", "0 11", Rule::LabelForm, 19, "`0 11` is not an event type"),
    pitfall(Pcf, "1 {0,0,255}", "1 {0,0,256}", Rule::LabelForm, 13, "`{0,0,256}` is not a colour"),
    pitfall(Pcf, "1 stencil", "1", Rule::LabelForm, 21, "`1` is not a number with a label"),
    pitfall(Pcf, "1 stencil", "one stencil", Rule::LabelForm, 21, "`one stencil`"),
    pitfall(Pcf, "0 10 Task id", "0 2147483648 Task id", Rule::LabelRange, 16, "2147483648 cannot have a label"),
    pitfall(Pcf, "1 stencil", "2147483648 stencil", Rule::LabelRange, 21, "2147483648 cannot have a label"),
    pitfall(Pcf, "1 Running", "2 Running", Rule::UnlabelledState, 4, "state 1 has no label"),
    pitfall(Pcf, "0 10 Task id", "0 12 Task id", Rule::UnlabelledType, 6, "type 10 has no label"),
    pitfall(Pcf, "1 stencil", "2 stencil", Rule::UnlabelledValue, 6, "value 1 of type 11 has no label"),

    pitfall(Pcf, "1 stencil", "1 stencil\n1 sweep", Rule::LabelTwice, 22, "1 has a label already"),
    pitfall(Pcf, "1 Running", "1 Running\n1 Idle", Rule::LabelTwice, 10, "1 has a label already"),
    pitfall(Pcf, "0 10 Task id", "0 10 Task id\n0 10 Task", Rule::LabelTwice, 17, "type 10 has a label already"),
    pitfall(Pcf, "1 {0,0,255}", "2 {0,0,255}", Rule::UncolouredState, 9, "state 1 has no colour"),

    // Rows.
    pitfall(Row, "LEVEL NODE SIZE 2", "LEVEL HOST SIZE 2", Rule::RowLevel, 1, "`LEVEL HOST SIZE 2`"),
    pitfall(Row, "LEVEL THREAD SIZE 2", "LEVEL THREAD 2", Rule::RowLevel, 5, "`LEVEL THREAD 2`"),
    pitfall(Row, "LEVEL NODE", "first\nLEVEL NODE", Rule::RowLevel, 1, "`first` belongs to no level"),
    pitfall(Row, "left\n", "", Rule::BlankRowName, 3, "counts as a name"),
    pitfall(Row, "r1 w0\n", "", Rule::RowCount, 5, "2 names are announced, 1 are listed"),
    pitfall(Row, "r1 w0\n", "r1 w0\nr2 w0\n", Rule::RowCount, 8, "more names than the 2 announced"),
    pitfall(Row, "THREAD SIZE 2\nr0 w0\n", "THREAD SIZE 1\n", Rule::RowSize, 5, "level THREAD has 1 names, the header 2"),
];

#[test]
fn sample_is_clean() {
    let report = sample().assert_clean();
    assert!(report.findings().is_empty(), "{report}");
}

#[test]
fn each_pitfall_is_found_where_it_is() {
    for Pitfall { file, old, new, rule, line, text } in PITFALLS {
        let report = changed(*file, old, new).check();
        let shown = format!("`{old}` -> `{new}`:\n{report}");
        let finding = report.findings().iter().find(|finding| finding.rule == *rule);
        let finding = finding.unwrap_or_else(|| panic!("{rule:?} is not found in {shown}"));
        assert_eq!(finding.line, *line, "{shown}");
        assert!(finding.text.contains(text), "no `{text}` in {shown}");
        // Missing labels are found in the trace that uses them.
        let labels = [Rule::UnlabelledState, Rule::UnlabelledType, Rule::UnlabelledValue];
        let place = if labels.contains(rule) { "prv" } else { file.extension() };
        assert_eq!(finding.file.extension(), Some(place.as_ref()), "{shown}");
        assert_eq!(report.is_clean(), rule.severity() == Severity::Note, "{shown}");
    }
}

#[test]
fn missing_files_empty_traces_and_endless_lines_are_found() {
    let mut trace = sample();
    (trace.pcf, trace.row) = (None, None);
    let report = trace.assert_clean();
    assert_eq!((report.breaches(Rule::NoLabelFile), report.breaches(Rule::NoRowFile)), (1, 1));

    trace.prv.clear();
    assert_eq!(trace.check().breaches(Rule::NotParaver), 1);
    trace.prv = sample().prv.lines().take(3).map(|line| format!("{line}\n")).collect();
    assert_eq!(trace.check().breaches(Rule::NoRecords), 1);
    trace.prv = changed(Prv, "# a comment", &format!("#{}", "x".repeat(16 << 20))).prv;
    let report = trace.check();
    assert_eq!(report.breaches(Rule::OverlongLine), 1, "{report}");
    assert_eq!(report.counts().records, 6, "the records after it are read");
}

#[test]
fn compressed_trace_is_read_as_it_is() {
    let plain = changed(Prv, "100_ns", "100_s");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.prv.gz");
    let mut packed = GzEncoder::new(File::create(&path).unwrap(), Compression::default());
    packed.write_all(plain.prv.as_bytes()).unwrap();
    packed.finish().unwrap();
    fs::write(folder.path().join("run.pcf"), plain.pcf.as_ref().unwrap()).unwrap();
    fs::write(folder.path().join("run.row"), plain.row.as_ref().unwrap()).unwrap();
    let (report, expected) = (check(&path).unwrap(), plain.check());
    assert_eq!(report.counts(), expected.counts());
    let found = |report: &Report| -> Vec<_> {
        report.findings().iter().map(|found| (found.rule, found.line)).collect()
    };
    assert_eq!(found(&report), found(&expected));

    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 12]).unwrap();
    let error = check(&path).expect_err("the file is cut").to_string();
    assert!(error.contains("run.prv.gz"), "{error}");
}

#[test]
fn control_characters_of_a_trace_are_shown_escaped() {
    for (file, old, new, shown) in [
        (Prv, "#Paraver (", "\u{1b}[31mParaver (", "the first word is `\\u{1b}[31mParaver`"),
        (Prv, "_ns:", "_\u{1b}[2J:", "the unit `_\\u{1b}[2J` is not"),
        (Prv, STATE, "\u{7}\n", "`\\u{7}` does not start like a record"),
        (Pcf, "DEFAULT_OPTIONS", "\u{9b}2J", "`\\u{9b}2J` is not the name of a section"),
        (Row, "LEVEL NODE", "LEVEL \0 NODE", "`LEVEL \\0 NODE SIZE 2` is not a level"),
    ] {
        let report = changed(file, old, new).check().to_string();
        assert!(report.contains(shown), "{report:?}");
        assert!(!report.contains(|c: char| c.is_control() && c != '\n'), "{report:?}");
    }
}

#[test]
fn thread_without_records_is_only_noted() {
    let mut trace = changed(Prv, "2(1:1,1:2)", "2(2:1,1:2)");
    trace.row = None;
    let report = trace.assert_clean();
    let note = report.findings().iter().find(|finding| finding.rule == Rule::UnusedThread);
    assert_eq!(note.expect("note").text, "1 of 3 threads have no record, as 1.1.2");
}

#[test]
fn every_rule_has_a_test() {
    let other_tests = [
        Rule::NoLabelFile,
        Rule::NoRowFile,
        Rule::NoRecords,
        Rule::OverlongLine,
        Rule::UnusedThread,
        // Of views, in the tests of those.
        Rule::ViewForm,
        Rule::UnknownWord,
        Rule::UnknownType,
    ];
    let tested: BTreeSet<Rule> =
        PITFALLS.iter().map(|pitfall| pitfall.rule).chain(other_tests).collect();
    assert_eq!(tested.into_iter().collect::<Vec<_>>(), Rule::ALL);
}

#[test]
fn findings_are_shown_one_a_line_and_counted_beyond_the_limit() {
    let trace = changed(Prv, "# a comment\n", &"\n".repeat(25));
    let report = trace.check();
    assert_eq!((report.errors(), report.warnings()), (0, 25));
    let shown = report.to_string();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 22);
    assert!(lines[0].ends_with("run.prv:3: warning: the line is blank [BlankLine]"), "{shown}");
    assert_eq!(lines[20], "warning: 5 more [BlankLine]");
    assert_eq!(
        lines[21],
        "0 errors, 25 warnings; 6 records (3 states, 2 events with 4 values, 1 communication), \
         2 ranks, 2 threads, 2 nodes, 4 cpus, 100 ns",
    );
}
