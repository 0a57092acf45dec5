//! Tests of the soak itself: the programs it draws, and the failures it notices.

use talpf_runtime::Mode;

use super::episode_error::compare;
use super::graph::{Fate, Graph, Manner};
use super::rng::Rng;
use super::{EpisodeKind, chosen};

#[test]
fn a_seed_repeats_its_program() {
    let draw = |seed| format!("{:?}", Graph::draw(&mut Rng::new(seed)));
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
}

#[test]
fn programs_have_every_access_manner_and_fate() {
    let graphs: Vec<Graph> = (0..200).map(|seed| Graph::draw(&mut Rng::new(seed))).collect();
    let tasks = || graphs.iter().flat_map(|graph| &graph.phases).flat_map(|phase| &phase.tasks);
    let has_mode = |mode| tasks().any(|task| task.uses.iter().any(|access| access.mode == mode));
    for mode in [Mode::In, Mode::Out, Mode::InOut, Mode::Concurrent, Mode::Commutative] {
        assert!(has_mode(mode), "{mode:?}");
    }
    use Manner::{Calls, Leaves, Sleeps, Woken, Yields};
    for manner in [Calls, Yields, Sleeps, Woken, Leaves] {
        assert!(tasks().any(|task| task.manner == manner), "{manner:?}");
    }
    use Fate::{PanicsAfterWriting, PanicsBeforeWriting, Reports, Runs, Skipped};
    for fate in [Runs, PanicsBeforeWriting, PanicsAfterWriting, Reports, Skipped] {
        assert!(tasks().any(|task| task.fate == fate), "{fate:?}");
    }
    let mut phases = graphs.iter().flat_map(|graph| &graph.phases);
    assert!(phases.any(|phase| phase.cancels.is_some()));
}

#[test]
fn one_element_that_differs_is_named() {
    assert!(compare("array", &[1, 2, 3], &[1, 2, 3]).is_ok());
    let wrong = compare("array", &[1, 2, 3], &[1, 5, 3]).unwrap_err().to_string();
    assert_eq!(wrong, "array, element 1: 0x2 instead of 0x5");
    assert!(compare("array", &[1, 2], &[1, 2, 3]).is_err());
}

// A hostile program runs in a process of its own, chosen by its name.
#[test]
fn a_name_chooses_one_kind_of_programs() {
    for (_, kind) in EpisodeKind::all() {
        let chosen = chosen(&[kind.name.to_owned()]).expect("a kind");
        assert_eq!(chosen.len(), 1, "{}", kind.name);
    }
    assert!(chosen(&["sleep".to_owned()]).is_err());
}
