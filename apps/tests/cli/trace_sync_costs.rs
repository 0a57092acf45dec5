//! Costs of syncs in the summary of a run whose rounds overlap.

use tempfile::tempdir;

use crate::{stdout_of, talpf_with};

#[test]
fn syncs_that_overlap_cost_a_rank_no_more_than_the_trace() {
    let folder = tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let run = "jacobi --size 128 --block 16 --steps 100 --ranks 4 --workers 2 --variant talpf-get";
    let arguments: Vec<&str> = run.split(' ').chain(["--trace", path]).collect();
    stdout_of(&talpf_with(&arguments));
    let prv = folder.path().join("jacobi.prv");
    let json = stdout_of(&talpf_with(&["trace", "summary", prv.to_str().unwrap(), "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let ranks = json["ranks"].as_array().unwrap();
    let costs: Vec<u64> = ranks.iter().map(|rank| number(&rank["sync_ns"])).collect();
    assert_eq!(costs.len(), 4);
    let length = number(&json["duration_ns"]);
    assert!(costs.iter().all(|cost| (1..=length).contains(cost)), "{costs:?} of {length}");
    let modes = json["syncs"].as_object().unwrap();
    let of_modes: Vec<u64> = modes.values().map(|costs| number(&costs["total_ns"])).collect();
    assert!(of_modes.iter().all(|total| *total <= costs.iter().sum()), "{of_modes:?} {costs:?}");
}
