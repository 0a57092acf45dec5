//! Behaviour of all applications on the command line.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::tempdir;

use crate::trace_figures::assert_agree;
use crate::{error_of, stdout_of, talpf, talpf_with, value, variants_of};

/// Small runs whose sizes do not divide.
const SMALL: [&str; 9] = [
    "jacobi --rows 37 --cols 23 --block 8 --steps 9",
    "gauss-seidel --rows 37 --cols 23 --block 8 --single-blocks --steps 9",
    "nbody --particles 101 --block 10 --steps 3",
    "matmul --size 61 --block 8 --iterations 3",
    "matmul-g --size 61 --block 8 --iterations 3",
    "histogram --numbers 1001 --bins 13 --block 100 --steps 3",
    "histogram --numbers 1001 --bins 13 --block 100 --steps 3 --no-aggregation",
    "kmeans --points 1001 --clusters 7 --block 100 --steps 3",
    "mandelbrot --size 41 --limit 60 --block 3 --steps 3",
];

fn variants(app: &str) -> Vec<&'static str> {
    variants_of(app).0.iter().map(|variant| variant.name()).collect()
}

#[test]
fn every_variant_is_verified_traced_drawn_and_written() {
    let folder = tempdir().unwrap();
    let (image, json) = (folder.path().join("a.png"), folder.path().join("a.json"));
    let outputs = format!(
        "--check --image {} --json {} --trace {}",
        image.display(),
        json.display(),
        folder.path().display()
    );
    for small in SMALL {
        let app = small.split(' ').next().unwrap();
        for variant in variants(app) {
            let text =
                stdout_of(&talpf(&format!("{small} --ranks 4 --variant {variant} {outputs}")));
            assert_eq!(value(&text, "variant"), variant);
            assert!(value(&text, "verified").starts_with("yes"), "{text}");
            let fields: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
            assert_eq!((&fields["app"], &fields["verified"]), (&app.into(), &true.into()));
            let metrics = &fields["metrics"];
            let has_tasks = !["serial", "fork-join"].contains(&variant);
            assert_eq!(metrics.is_object(), has_tasks, "{app} {variant}: {metrics}");
            if has_tasks {
                assert!(metrics["tasks_created"].as_u64() > Some(0), "{metrics}");
                assert_eq!(metrics["tasks_created"], metrics["tasks_completed"]);
                assert!(metrics["runs"].as_u64() > Some(0), "{metrics}");
                assert_eq!(metrics["queued"]["shared"], 0, "{metrics}");
            }
            let file = std::io::BufReader::new(fs::File::open(&image).unwrap());
            assert!(png::Decoder::new(file).read_info().is_ok());
            let prv = folder.path().join(app).with_extension("prv");
            if has_tasks {
                assert_agree(&prv, metrics, 4, &format!("{small} {variant}"));
            }
            let check = stdout_of(&talpf_with(&["trace", "check", prv.to_str().unwrap()]));
            assert!(check.starts_with("0 errors, 0 warnings; "), "{app} {variant}: {check}");
        }
    }
}

#[test]
fn traces_of_one_and_two_ranks_agree_with_the_metrics() {
    let folder = tempdir().unwrap();
    let json = folder.path().join("a.json");
    let outputs = format!("--json {} --trace {}", json.display(), folder.path().display());
    let app = SMALL[0];
    let with_tasks = |variant: &&str| !["serial", "fork-join"].contains(variant);
    for variant in variants("jacobi").into_iter().filter(with_tasks) {
        for ranks in [1, 2] {
            let run = format!("{app} --ranks {ranks} --variant {variant}");
            stdout_of(&talpf(&format!("{run} {outputs}")));
            let fields: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
            let prv = folder.path().join("jacobi.prv");
            assert_agree(&prv, &fields["metrics"], ranks, &run);
        }
    }
}

#[test]
fn no_variant_reads_and_writes_one_location_in_a_round() {
    for small in SMALL {
        let (variants, replayed) = variants_of(small.split(' ').next().unwrap());
        for variant in variants {
            let can_replay = replayed.contains(variant);
            for replay in [""].into_iter().chain(can_replay.then_some("--replay")) {
                let run = format!("{small} --ranks 4 --variant {} {replay}", variant.name());
                let text = stdout_of(&talpf(&format!("{run} --check --check-conflicts")));
                assert!(value(&text, "verified").starts_with("yes"), "{run}: {text}");
            }
        }
    }
}

#[test]
fn slow_ranks_change_the_time_alone() {
    for small in SMALL {
        for slow in ["all:1", "0:3.5", "3:2"] {
            let text = stdout_of(&talpf(&format!("{small} --ranks 4 --check --slow-rank {slow}")));
            assert!(value(&text, "verified").starts_with("yes"), "{text}");
        }
    }
    for bad in ["1", "1:", ":2", "x:2", "1:0.9", "1:1001", "1:nan", "1:2:3"] {
        let error = error_of(&talpf(&format!("jacobi --slow-rank {bad}")));
        assert!(error.contains(&format!("'{bad}'")), "{error}");
        assert!(error.ends_with("a colon, and a factor from 1 to 1000"), "{error}");
    }
    let error = error_of(&talpf("jacobi --slow-rank 2:2 --ranks 2"));
    assert_eq!(error, "slow rank is 2, expected 0 to 1");
}

#[test]
fn replay_is_shown_in_results_and_traces() {
    let folder = tempdir().unwrap();
    let json = folder.path().join("a.json");
    for run in [
        "jacobi --rows 37 --cols 23 --block 8 --steps 9 --variant talpf-msg",
        "gauss-seidel --rows 37 --cols 23 --block 8 --single-blocks --steps 9 --variant tampi",
        "nbody --particles 101 --block 10 --steps 3 --variant talpf-get",
        "kmeans --points 101 --block 10 --steps 3 --variant talpf-cached-ack",
    ] {
        for (option, replayed) in [("", false), (" --replay", true)] {
            let outputs = format!("--trace {} --json {}", folder.path().display(), json.display());
            let text = stdout_of(&talpf(&format!("{run} --ranks 3 --check {outputs}{option}")));
            assert_eq!(value(&text, "replay"), if replayed { "yes" } else { "no" });
            assert!(value(&text, "verified").starts_with("yes"), "{text}");
            let fields: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
            assert_eq!(fields["replay"], Value::from(replayed));
            let app = run.split(' ').next().unwrap();
            let prv = folder.path().join(app).with_extension("prv");
            let checked = stdout_of(&talpf(&format!("trace check {}", prv.display())));
            assert!(checked.contains("0 errors"), "{checked}");
        }
    }
    let error = error_of(&talpf("gauss-seidel --variant fork-join --replay"));
    assert_eq!(
        error,
        "gauss-seidel cannot replay fork-join, only talpf-default, talpf-lanes, tampi, \
         tampi-blocking"
    );
}

#[test]
fn applications_say_how_many_ranks_they_have_use_for() {
    for (run, expected) in [
        ("gauss-seidel --rows 3 --cols 9 --ranks 4", "at most 3, the number of rows"),
        (
            "nbody --particles 20 --block 10 --ranks 3",
            "at most 2, the number of blocks of particles",
        ),
        ("matmul --size 20 --block 10 --ranks 3", "at most 2, the number of row blocks"),
        ("histogram --bins 3 --ranks 4", "at most 3, the number of bins"),
        ("kmeans --points 3 --ranks 4", "at most 3, the number of points"),
        ("mandelbrot --size 9 --block 3 --ranks 4", "at most 3, the number of pieces"),
        ("matmul-g --ranks 3", "a square number: 1, 4, 9 and so on"),
    ] {
        let error = error_of(&talpf(run));
        let ranks = run.rsplit(' ').next().unwrap();
        assert_eq!(error, format!("ranks is {ranks}, expected {expected}"));
    }
}

#[test]
fn numbers_outside_their_limits() {
    for (option, most) in [
        ("nbody --particles", 1 << 20),
        ("nbody --block", 1 << 20),
        ("nbody --steps", 1_000_000_000),
        ("matmul --size", 1 << 20),
        ("matmul --block", 1 << 20),
        ("matmul-g --iterations", 1_000_000_000),
        ("gauss-seidel --size", 1 << 24),
        ("histogram --numbers", 1 << 30),
        ("histogram --bins", 1 << 20),
        ("kmeans --points", 1 << 28),
        ("kmeans --clusters", 1 << 12),
        ("mandelbrot --size", 1 << 14),
    ] {
        for bad in ["0", "-1", "ten", &(most + 1).to_string()] {
            let error = error_of(&talpf(&format!("{option} {bad}")));
            assert!(error.contains(&format!("'{bad}'")), "{error}");
            assert!(error.ends_with(&format!("from 1 to {most}")), "{error}");
        }
    }
}

#[test]
fn variants_of_other_applications_are_unknown() {
    for (app, variant) in
        [("gauss-seidel", "talpf-get"), ("nbody", "talpf-lanes"), ("matmul-g", "talpf-cached")]
    {
        let error = error_of(&talpf(&format!("{app} --variant {variant}")));
        let expected = format!("invalid value '{variant}' for '--variant <VARIANT>'");
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn preset_has_the_sizes_of_the_thesis_and_is_refused_without_memory() {
    for app in ["jacobi", "gauss-seidel", "matmul", "matmul-g"] {
        let error = error_of(&talpf(&format!("{app} --preset thesis --size 1000000")));
        assert!(
            error.starts_with("the run needs ") && error.contains("MiB are available"),
            "{error}"
        );
    }
    let text = stdout_of(&talpf("jacobi --preset thesis --rows 600 --cols 40 --steps 2"));
    assert_eq!((value(&text, "block"), value(&text, "rows")), ("512", "600"));
    let text = stdout_of(&talpf("nbody --preset thesis --particles 600 --steps 2"));
    assert_eq!((value(&text, "block"), value(&text, "particles")), ("512", "600"));
    let text = stdout_of(&talpf("matmul --preset thesis --size 600 --iterations 2"));
    assert_eq!((value(&text, "block"), value(&text, "iterations")), ("512", "2"));
}

#[test]
fn particles_come_from_a_file_or_from_a_seed() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("pair.txt");
    fs::write(&path, "-1 0 0  0 -0.5 0  1\n1 0 0  0 0.5 0  1 # the other\n").unwrap();
    let run = format!("nbody --file {} --block 1 --steps 100 --check", path.display());
    let text = stdout_of(&talpf(&run));
    assert_eq!(value(&text, "particles"), "2");
    assert!(value(&text, "verified").starts_with("yes"));
    let checksum = |seed: &str| {
        let text = stdout_of(&talpf(&format!("nbody --particles 50 --steps 1 --seed {seed}")));
        value(&text, "checksum").to_owned()
    };
    assert_eq!(checksum("3"), checksum("3"));
    assert_ne!(checksum("3"), checksum("4"));
    fs::write(&path, "1 2 3\n").unwrap();
    let error = error_of(&talpf(&run));
    assert!(error.ends_with(":1: particle is \"1 2 3\", expected x, y, z, vx, vy, vz and mass"));
}

/// Counts tasks of the forces that run before one spawned earlier, on one worker. Task numbers grow
/// with the spawns only in a process that has not run tasks before.
fn overtakings(priorities: &str, folder: &Path) -> usize {
    let run = "nbody --particles 512 --block 32 --steps 1 --ranks 1 --workers 1 --priorities";
    stdout_of(&talpf(&format!("{run} {priorities} --trace {}", folder.display())));
    let labels = fs::read_to_string(folder.join("nbody.pcf")).unwrap();
    let pull = labels.lines().find_map(|line| line.strip_suffix(" pull")).unwrap().trim();
    let number = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let is_pull = fields[0] == "2" && fields[6..].chunks(2).any(|pair| pair == ["11", pull]);
        is_pull.then(|| fields[7].parse::<u64>().unwrap())
    };
    let records = fs::read_to_string(folder.join("nbody.prv")).unwrap();
    let numbers: Vec<u64> = records.lines().filter_map(number).collect();
    assert_eq!(numbers.len(), 16 * 16);
    numbers.windows(2).filter(|pair| pair[0] > pair[1]).count()
}

#[test]
fn priorities_let_chains_advance_side_by_side() {
    let folder = tempdir().unwrap();
    let (with, without) = (overtakings("on", folder.path()), overtakings("off", folder.path()));
    assert!(4 * with < without, "{with} with priorities, {without} without");
}

/// Tests options that several applications have with different defaults.
#[test]
fn help_gives_the_defaults_of_its_own_application_only() {
    let apps = [
        "jacobi",
        "gauss-seidel",
        "nbody",
        "matmul",
        "matmul-g",
        "histogram",
        "kmeans",
        "mandelbrot",
    ];
    for (app, compared) in apps.into_iter().flat_map(|app| [(app, false), (app, true)]) {
        let words = if compared { vec!["compare", app, "--help"] } else { vec![app, "--help"] };
        let help = stdout_of(&talpf_with(&words));
        let (_, options) = help.split_once("Options:").expect("a list of options");
        for option in ["--ranks", "--block"] {
            let text = options.split_once(&format!("{option} <")).expect(option).1;
            let text = text.split("\n      --").next().unwrap_or_default();
            assert!(text.contains("[default: "), "{words:?} {option}: {text}");
            for other in apps.iter().filter(|other| **other != app) {
                assert!(!text.contains(other), "{words:?} {option}: {text}");
            }
        }
        let least = if app == "matmul-g" { [" 4", " 1,4,9,16"] } else { [" 2", " 1,2,4,8"] };
        let ranks = options.split_once("--ranks <").expect("ranks").1;
        assert!(ranks.contains(&format!("[default:{}", least[usize::from(compared)])), "{ranks}");
    }
}

#[test]
fn every_variant_is_serial_over_a_link_that_takes_time() {
    let folder = tempdir().unwrap();
    let json = folder.path().join("a.json");
    let link = "--link latency=20us,bandwidth=1GB/s";
    let outputs = format!("--json {} --trace {}", json.display(), folder.path().display());
    for small in SMALL {
        let app = small.split(' ').next().unwrap();
        for variant in variants(app) {
            let run = format!("{small} --ranks 4 --variant {variant} --check {link} {outputs}");
            let text = stdout_of(&talpf(&run));
            assert!(value(&text, "verified").starts_with("yes"), "{text}");
            if ["serial", "fork-join"].contains(&variant) {
                continue;
            }
            assert_eq!(value(&text, "link"), "latency=20us,bandwidth=1GB/s (simulated)");
            let fields: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
            assert_eq!(fields["simulated_link"], "latency=20us,bandwidth=1GB/s");
            let prv = folder.path().join(app).with_extension("prv");
            let summary = stdout_of(&talpf_with(&["trace", "summary", prv.to_str().unwrap()]));
            assert!(summary.contains("simulated: link latency=20us"), "{summary}");
        }
    }
}

#[test]
fn a_link_that_cannot_be_used_is_named() {
    for (options, expected) in [
        ("--link latency=2", "latency"),
        ("--link nonesuch", "nonesuch"),
        ("--link ideal --simulate ideal", "--link is not supported with --simulate"),
        ("--link ideal --transport shm", "--link is not supported with --transport shm"),
    ] {
        let error = error_of(&talpf(&format!("jacobi --size 16 {options}")));
        assert!(error.contains(expected), "{options}: {error}");
    }
}
