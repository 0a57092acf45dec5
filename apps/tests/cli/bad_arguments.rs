//! Every option refuses values outside its limits, and names the limits.

use tempfile::tempdir;

use crate::{command, error_of, stdout_of, talpf};

#[test]
fn numbers_outside_their_limits() {
    for (option, most) in [
        ("ranks", 4096_u64),
        ("workers", 1024),
        ("workers-per-rank", 1024),
        ("size", 1 << 24),
        ("block", 1 << 24),
        ("steps", 1_000_000_000),
    ] {
        for bad in ["0", "-1", "1.5", "ten", "99999999999999999999", &(most + 1).to_string()] {
            let error = error_of(&talpf(&format!("jacobi --{option} {bad}")));
            assert!(error.contains(&format!("'{bad}' for '--{option} ")), "{error}");
            assert!(error.ends_with(&format!("expected a whole number from 1 to {most}")));
        }
    }
}

#[test]
fn several_processes_without_mpi_between_them() {
    for variable in ["MV2_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"] {
        for (processes, is_refused) in [("1", false), ("2", true), ("", false)] {
            let compare = "compare jacobi --variants serial,talpf-cached,tampi --size 8 --steps 1";
            for arguments in ["jacobi --size 8 --steps 1", compare] {
                let folder = tempdir().unwrap();
                let arguments: Vec<_> = arguments.split(' ').chain(["--quiet"]).collect();
                let mut command = command(&arguments);
                let output = command.current_dir(&folder).env(variable, processes).output();
                let output = output.expect("the command exists");
                if is_refused {
                    let error = error_of(&output);
                    assert!(error.starts_with("mpirun has started 2 processes"), "{error}");
                    assert!(error.contains("use --transport mpi"), "{error}");
                    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "{arguments:?}");
                } else {
                    stdout_of(&output);
                }
            }
        }
    }
}

#[test]
fn comparisons_over_mpi() {
    let error = error_of(&talpf("compare nbody --transport mpi"));
    assert!(error.starts_with("compare runs all ranks in one process"), "{error}");
}

#[test]
fn rows_and_columns_outside_their_limits() {
    for bad in ["0", "-5", "16777217", "many"] {
        for options in [format!("--rows {bad} --cols 1"), format!("--rows 1 --cols {bad}")] {
            let error = error_of(&talpf(&format!("jacobi {options}")));
            assert!(error.contains(&format!("'{bad}'")), "{error}");
            assert!(error.ends_with("expected a whole number from 1 to 16777216"), "{error}");
        }
    }
}

#[test]
fn rows_and_columns_come_together_and_without_size() {
    assert!(error_of(&talpf("jacobi --rows 4")).contains("--cols <C>"));
    assert!(error_of(&talpf("jacobi --cols 4")).contains("--rows <R>"));
    let error = error_of(&talpf("jacobi --size 4 --rows 4 --cols 4"));
    assert!(error.contains("'--size <S>' cannot be used with"), "{error}");
}

#[test]
fn more_ranks_than_rows() {
    let error = error_of(&talpf("jacobi --rows 3 --cols 9 --ranks 4"));
    assert_eq!(error, "ranks is 4, expected at most 3, the number of rows");
}

#[test]
fn trace_of_more_rows_than_paraver_counts() {
    let run = "jacobi --size 1024 --ranks 1024 --workers 64 --trace /tmp/talpf-no-such-folder";
    let error = error_of(&talpf(run));
    assert_eq!(error, "ranks times workers of a trace is 65536, expected 1 to 65535");
}

#[test]
fn matrix_larger_than_memory() {
    let error = error_of(&talpf("jacobi --size 16777216"));
    assert!(error.starts_with("the run needs 4294968832 MiB, but "), "{error}");
}

#[test]
fn ranks_count_in_what_is_larger_than_memory() {
    for (variant, mib) in [("talpf-cached", 148), ("tampi", 272)] {
        let run = format!("jacobi --size 16777216 --ranks 512 --variant {variant}");
        let error = error_of(&talpf(&run));
        // 256 tasks of 512 bytes for each rank.
        let parts = format!("{mib} MiB to connect 512 ranks and 64 MiB for their tasks");
        assert!(error.contains(&format!(" MiB ({parts}, see --ranks), but ")), "{error}");
    }
}

#[test]
fn tasks_that_the_throttle_allows_count_in_what_is_larger_than_memory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("talpf.toml");
    let file = file.to_str().unwrap();
    // More than 65,536 of a rank do not count.
    for (throttle, mib) in [("16777216", 16_384), ("65536", 16_384), ("4096", 1024), ("'off'", 64)]
    {
        std::fs::write(file, format!("throttle = {throttle}")).unwrap();
        let run = format!("jacobi --size 16777216 --ranks 512 --runtime-config {file}");
        let error = error_of(&talpf(&run));
        let parts = format!("148 MiB to connect 512 ranks and {mib} MiB for their tasks");
        assert!(error.contains(&format!(" MiB ({parts}, see --ranks), but ")), "{error}");
        // Variants without ranks spawn no tasks.
        let error = error_of(&talpf(&format!("{run} --variant serial")));
        assert!(error.starts_with("the run needs ") && !error.contains("ranks"), "{error}");
    }
}

#[test]
fn unknown_variant() {
    let error = error_of(&talpf("jacobi --variant fork"));
    assert!(error.starts_with("invalid value 'fork' for '--variant <VARIANT>'"), "{error}");
    let all = "serial, fork-join, lpf, talpf-default, talpf-cached, talpf-cached-barrier, \
               talpf-cached-ack, talpf-raw-cached, talpf-msg, talpf-get, tampi, tampi-blocking";
    assert!(error.contains(all), "{error}");
}

#[test]
fn option_without_its_value() {
    for option in [
        "variant",
        "ranks",
        "workers",
        "workers-per-rank",
        "size",
        "rows",
        "cols",
        "block",
        "steps",
        "config",
        "image",
        "json",
        "trace",
        "transport",
    ] {
        let error = error_of(&talpf(&format!("jacobi --{option}")));
        assert!(error.contains(&format!("'--{option} <")), "{error}");
    }
}

#[test]
fn value_for_a_flag_that_has_none() {
    for flag in ["check", "quiet", "replay"] {
        let error = error_of(&talpf(&format!("jacobi --{flag}=yes")));
        assert!(error.contains("'yes'") && error.contains(flag), "{error}");
    }
}

#[test]
fn unknown_option_argument_and_command() {
    assert!(error_of(&talpf("jacobi --sise 3")).contains("'--sise'"));
    assert!(error_of(&talpf("jacobi 3")).contains("'3'"));
    assert!(error_of(&talpf("jacobbi")).contains("'jacobbi'"));
    assert!(error_of(&talpf("")).contains("subcommand"));
}

#[cfg(not(feature = "mpi"))]
#[test]
fn transport_mpi_without_mpi() {
    for option in ["transport", "fabric"] {
        let error = error_of(&talpf(&format!("jacobi --variant tampi --{option} mpi")));
        assert!(error.starts_with("this program was built without MPI"), "{error}");
    }
}
