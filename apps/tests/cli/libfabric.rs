//! Runs in processes that libfabric connects, where it is installed.

use crate::launch::ONE_SIDED;
use crate::{error_of, stdout_of, talpf, value};

/// Returns the transports over TCP of this machine that libfabric has.
pub(crate) fn transports() -> Vec<&'static str> {
    let text = stdout_of(&talpf("info"));
    let providers = value(&text, "libfabric").to_owned();
    if providers.starts_with("not for --transport ofi: ") {
        let error = error_of(&talpf("launch -n 1 -- jacobi --transport ofi"));
        assert!(error.contains("libfabric"), "{error}");
        eprintln!("skipped: {providers}");
        return Vec::new();
    }
    println!("{providers}");
    let all =
        [("net on ", "ofi:net"), ("tcp;ofi_rxm on ", "ofi:tcp;ofi_rxm"), (": tcp on ", "ofi:tcp")];
    all.into_iter().filter(|(there, _)| providers.contains(there)).map(|(_, name)| name).collect()
}

/// Checks that a run in processes gives the bits of the serial one.
#[track_caller]
fn is_serial(processes: usize, run: &str, transport: &str) {
    let run = format!("launch -n {processes} -- {run} --transport {transport} --check --quiet");
    let text = stdout_of(&talpf(&run));
    assert!(value(&text, "verified").starts_with("yes"), "{run}: {text}");
    assert!(value(&text, "transport").starts_with(transport), "{run}: {text}");
}

#[test]
fn every_one_sided_variant_is_serial_over_libfabric() {
    for transport in transports() {
        let jacobi = "jacobi --rows 37 --cols 23 --block 8 --steps 9";
        for variant in ONE_SIDED {
            for processes in [2, 3] {
                is_serial(processes, &format!("{jacobi} --variant {variant}"), transport);
            }
        }
        for (processes, run) in [
            (5, "jacobi --size 40 --block 8 --steps 9"),
            (2, "jacobi --size 40 --block 8 --steps 9 --grid 2x2 --ranks 4"),
            (3, "jacobi --rows 37 --cols 23 --block 8 --steps 9 --replay"),
            (
                3,
                "gauss-seidel --rows 37 --cols 23 --block 8 --single-blocks --steps 5 --variant talpf-lanes",
            ),
            (
                3,
                "gauss-seidel --rows 37 --cols 23 --block 8 --single-blocks --steps 5 --variant talpf-notify",
            ),
            (2, "nbody --particles 101 --block 10 --steps 2"),
            (2, "matmul --size 61 --block 8 --iterations 2 --variant talpf-get"),
            (4, "matmul-g --size 29 --block 8 --iterations 2 --variant talpf-get"),
            (3, "histogram --numbers 3000 --bins 50 --steps 2"),
            (3, "kmeans --points 3000 --clusters 50 --steps 2"),
            (3, "mandelbrot --size 64 --limit 100 --steps 2"),
        ] {
            is_serial(processes, run, transport);
        }
        // Without a provider the best one is chosen.
        is_serial(2, jacobi, "ofi");
    }
}

#[test]
fn what_libfabric_does_not_have_is_named_with_what_it_has() {
    let Some(transport) = transports().pop() else { return };
    for (choice, expected) in [
        ("ofi:nonesuch", "libfabric has no provider \"nonesuch\"; it has "),
        ("ofi:sockets", "the provider sockets of libfabric is not used: it is deprecated"),
        (&format!("{transport},iface=nonesuch0"), "has no interface \"nonesuch0\"; it has "),
    ] {
        let error = error_of(&talpf(&format!("launch -n 1 -- jacobi --transport {choice}")));
        assert!(error.contains(expected), "{choice}: {error}");
    }
}

#[test]
fn a_choice_that_cannot_be_read_is_named() {
    for choice in ["ofi:tcp,eth0", "ofi:,", "ofi:tcp,iface="] {
        let error = error_of(&talpf(&format!("launch -n 1 -- jacobi --transport {choice}")));
        assert!(error.contains("expected PROVIDER[,iface=NAME]"), "{choice}: {error}");
    }
    let error = error_of(&talpf("jacobi --transport ofix"));
    assert!(error.contains("'ofix'") && error.contains("ofi, mpi"), "{error}");
    let error = error_of(&talpf("jacobi --transport ofi:tcp"));
    assert!(error.contains("--transport ofi is for processes"), "{error}");
}
