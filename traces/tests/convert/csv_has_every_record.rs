//! Tables have a header, and a row for each state, value and message.

use std::fs;

use talpf_traces::convert_to_csv;

use crate::run::trace;

#[test]
fn rows_are_records() {
    let (folder, prv) = trace();
    let tables = folder.path().join("tables");
    fs::create_dir(&tables).unwrap();
    let paths = convert_to_csv(&prv, &tables).unwrap();
    let text = fs::read_to_string(&prv).unwrap();
    let lines = |kind: &str| text.lines().filter(|line| line.starts_with(kind)).count();
    let values = text.lines().filter(|line| line.starts_with("2:"));
    let values: usize = values.map(|line| (line.split(':').count() - 6) / 2).sum();
    let tables = paths.map(|path| fs::read_to_string(path).unwrap());
    let heads = tables.each_ref().map(|table| table.lines().next().unwrap());
    assert_eq!(
        heads,
        [
            "rank,row,cpu,begin_ns,end_ns,state,label",
            "rank,row,cpu,time_ns,type,type_label,value,value_label",
            "from,to,from_row,to_row,call_ns,send_ns,receive_ns,end_ns,bytes,tag,kind",
        ]
    );
    let rows = tables.each_ref().map(|table| table.lines().count() - 1);
    assert_eq!(rows, [lines("1:"), values, lines("3:")]);

    let [states, events, messages] = &tables;
    assert!(states.contains("0,0,1,540,700,0,\"Idle\"\n"), "{states}");
    let quoted = "0,0,1,0,11,\"Task type\",2,\"first \"\"half\"\", \\ <1>\"\n";
    assert!(events.contains(quoted), "{events}");
    assert!(messages.contains("0,1,0,3,"), "{messages}");
    let sizes = [64, 128, 192].map(|bytes| format!(",{bytes},"));
    assert!(sizes.iter().all(|bytes| messages.contains(bytes)), "{messages}");
    assert!(messages.lines().skip(1).all(|line| line.ends_with(",\"data\"")), "{messages}");
}
