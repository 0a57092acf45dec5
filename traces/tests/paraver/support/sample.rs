//! A small trace by hand, clean in every respect, for tests that break it.

use super::Trace;

const PRV: &str = "\
#Paraver (21/11/2026 at 02:40):00000000000000000100_ns:2(2,2):1:2(1:1,1:2),1
c:1:1:2:1:2
# a comment
1:1:1:1:1:0:40:1
1:3:1:2:1:0:100:0
2:1:1:1:1:10:10:7:11:1
3:1:1:1:1:20:25:4:1:2:1:60:50:4096:1
1:2:1:1:1:40:100:0
2:1:1:1:1:40:10:0:11:0
";

const PCF: &str = "\
DEFAULT_OPTIONS
LEVEL THREAD

DEFAULT_SEMANTIC
THREAD_FUNC State As Is

STATES
0 Idle
1 Running

STATES_COLOR
0 {117,195,255}
1 {0,0,255}

EVENT_TYPE
0 10 Task id

EVENT_TYPE
0 11 Task type
VALUES
1 stencil
";

const ROW: &str = "\
LEVEL NODE SIZE 2
left
right

LEVEL THREAD SIZE 2
r0 w0
r1 w0
";

/// Returns the sample. Line 4 of its `.prv` is the first record.
pub(crate) fn sample() -> Trace {
    Trace { prv: PRV.into(), pcf: Some(PCF.into()), row: Some(ROW.into()) }
}

/// File of a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) enum File {
    Prv,
    Pcf,
    Row,
}

impl File {
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Prv => "prv",
            Self::Pcf => "pcf",
            Self::Row => "row",
        }
    }
}

/// Returns the sample with `old` replaced by `new` in one file that contains `old`.
#[track_caller]
pub(crate) fn changed(file: File, old: &str, new: &str) -> Trace {
    let mut trace = sample();
    let text = match file {
        File::Prv => &mut trace.prv,
        File::Pcf => trace.pcf.as_mut().expect("pcf"),
        File::Row => trace.row.as_mut().expect("row"),
    };
    assert!(text.contains(old), "the sample has no `{old}`");
    *text = text.replace(old, new);
    trace
}
