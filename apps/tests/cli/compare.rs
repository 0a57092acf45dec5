use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::tempdir;

use crate::{error_of, stdout_of, talpf, talpf_with};

const SMALL: &str =
    "compare jacobi --size 40 --steps 4 --block 8 --ranks 2,1 --variants talpf-msg,talpf-default";

fn run(options: &str, out: &Path) -> String {
    stdout_of(&talpf(&format!("{options} --out {}", out.display())))
}

#[test]
fn results_have_every_point_and_serial() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("new/folder");
    let text = run(&format!("{SMALL} --repeat 2"), &out);
    let rows: Vec<_> = text.lines().take(6).map(|line| line.split(' ').next().unwrap()).collect();
    let expected =
        ["variant", "serial", "talpf-default", "talpf-default", "talpf-msg", "talpf-msg"];
    assert_eq!(rows, expected);
    assert!(text.contains("2 timed runs are too few"), "{text}");

    let json: Value = serde_json::from_slice(&fs::read(out.join("results.json")).unwrap()).unwrap();
    assert_eq!((&json["app"], &json["scaling"]), (&"jacobi".into(), &"strong".into()));
    let points = json["points"].as_array().unwrap();
    assert_eq!(points.len(), 5);
    for point in points {
        assert_eq!(point["seconds"].as_array().unwrap().len(), 2);
        let speedup = point["speedup"].as_f64().unwrap();
        let ratio = point["rate"].as_f64().unwrap() / points[0]["rate"].as_f64().unwrap();
        assert!((speedup - ratio).abs() < 1e-9);
    }
    // Two neighbours pass a halo each in every step; halos are 40 numbers long.
    let traffic = &points[4]["traces"][0];
    assert_eq!((&traffic["messages"], &traffic["bytes"]), (&8.into(), &(8 * 40 * 8).into()));
    assert!(json["conditions"]["machine"].as_str().unwrap().contains("cores"));
}

#[test]
fn replayed_graphs_are_compared_beside_the_others() {
    let folder = tempdir().unwrap();
    let text = run(&format!("{SMALL} --replay --repeat 1"), folder.path());
    let rows = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!((rows("talpf-msg "), rows("talpf-msg replayed ")), (4, 2), "{text}");
    let json = fs::read(folder.path().join("results.json")).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    let points = json["points"].as_array().unwrap().iter();
    let replayed = points.map(|point| point["replay"].as_bool().unwrap());
    let variant = [false, false, true, true];
    assert_eq!(replayed.collect::<Vec<_>>(), [&[false], &variant[..], &variant].concat());
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("talpf-msg replayed</li>"), "{page}");
    let refused = error_of(&talpf("compare histogram --numbers 100 --steps 2 --replay"));
    assert_eq!(refused, "histogram cannot replay any of these variants");
}

#[test]
fn grids_are_compared_in_the_variants_that_take_them() {
    let folder = tempdir().unwrap();
    let grid = "compare jacobi --size 24 --steps 4 --block 4 --grid 2x3 --repeat 1 --quiet";
    let text = run(grid, folder.path());
    let rows = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!((rows("talpf-cached "), rows("talpf-get "), rows("tampi ")), (1, 1, 1), "{text}");
    assert_eq!(rows("talpf-raw-cached"), 0, "{text}");
    let json = fs::read(folder.path().join("results.json")).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    let cached = &json["points"].as_array().unwrap().last().unwrap();
    assert_eq!(cached["ranks"], 6);
    let error = error_of(&talpf(&format!("{grid} --variants talpf-raw-cached")));
    let expected = "talpf-raw-cached exchanges rows only, expected a grid of one column, not of 3";
    assert_eq!(error, expected);
    for ranks in [1, 4] {
        let error = error_of(&talpf(&format!("{grid} --ranks {ranks}")));
        assert_eq!(error, format!("ranks is {ranks}, but a grid of 2x3 has 6 ranks"));
    }
}

#[test]
fn weak_scaling_gives_every_rank_as_much() {
    let folder = tempdir().unwrap();
    for app in [
        "jacobi --size 16 --steps 3 --block 4",
        "gauss-seidel --size 16 --steps 3 --block 4 --single-blocks",
        "nbody --particles 40 --steps 2 --block 4",
        "matmul --size 20 --iterations 2 --block 4",
        "matmul-g --size 20 --iterations 2 --block 4",
        "histogram --numbers 60 --bins 9 --block 4 --steps 2",
        "kmeans --points 60 --clusters 9 --block 4 --steps 2",
        "mandelbrot --size 20 --block 4 --steps 2",
    ] {
        let options = format!("compare {app} --ranks 1,4 --scaling weak --repeat 1");
        let text = run(&options, folder.path());
        assert!(text.contains("serial") && !text.contains("same bits"), "{text}");
    }
}

#[test]
fn slow_rank_is_left_out_where_there_is_none() {
    let folder = tempdir().unwrap();
    run(&format!("{SMALL} --repeat 1 --slow-rank 1:5"), folder.path());
    let json = fs::read_to_string(folder.path().join("results.json")).unwrap();
    assert!(json.contains("rank 1, 5 times as slow"));
}

#[test]
fn bad_comparisons_are_errors() {
    for (options, expected) in [
        ("jacobi --variants talpf-lanes", "'talpf-lanes'"),
        ("jacobi --variants talpf-msg,", "a value is required"),
        ("jacobi --ranks 1,0", "expected a whole number from 1 to 4096"),
        ("jacobi --repeat 0", "expected a whole number from 1 to 1000"),
        ("jacobi --scaling both", "'both'"),
        ("matmul-g --ranks 1,2", "ranks is 2, expected a square number"),
        ("jacobi --size 3 --ranks 4", "ranks is 4, expected at most 3"),
        ("chess", "'chess'"),
        ("jacobi --out /proc/talpf", "cannot write /proc/talpf"),
    ] {
        let error = error_of(&talpf(&format!("compare {options}")));
        assert!(error.contains(expected), "{options}: {error}");
    }
    assert!(error_of(&talpf("compare")).contains("subcommand"));
}

/// Opens the page in a real browser, if there is one: it has all plots, and is as wide as the
/// window.
#[test]
fn page_opens_in_a_browser() {
    let folder = tempdir().unwrap();
    run(&format!("{SMALL} --repeat 1"), folder.path());
    let page = folder.path().join("report.html");
    let html = fs::read_to_string(&page).unwrap();
    for outside in ["http", "src=", "@import", "url(", "<script"] {
        assert!(!html.contains(outside), "the page needs {outside}");
    }
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    let Some(browser) = browsers.into_iter().find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    }) else {
        return;
    };
    let dump = |page: &Path| {
        let profile = format!("--user-data-dir={}", folder.path().join("profile").display());
        let output = Command::new(browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--window-size=390,844"])
            .args([&profile, "--dump-dom", &format!("file://{}", page.display())])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    // A script of the test, not of the page, measures what the browser has laid out.
    let probe = "<script>addEventListener('load', () => { const d = document.documentElement; \
                 d.dataset.plots = [...document.querySelectorAll('.plots svg')]\
                 .filter(svg => svg.getBoundingClientRect().height > 100).length; \
                 d.dataset.overflow = d.scrollWidth > d.clientWidth; });</script></body>";
    let probed = folder.path().join("probed.html");
    fs::write(&probed, html.replace("</body>", probe)).unwrap();
    let dom = dump(&probed);
    assert!(dom.contains("data-plots=\"6\""), "six plots are laid out: {dom}");
    assert!(dom.contains("data-overflow=\"false\""), "wider than the window");
}

#[test]
fn help_names_every_option() {
    let help = stdout_of(&talpf_with(&["compare", "jacobi", "--help"]));
    for option in [
        "variants",
        "ranks",
        "scaling",
        "repeat",
        "out",
        "slow-rank",
        "workers",
        "transport",
        "size",
    ] {
        assert!(help.contains(&format!("--{option}")), "{option}");
    }
}
