//! Builds the C functions that the bindings of the `mpi` crate lack, with the compiler of those
//! bindings.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/transport/mpi/window/operations.c");
    println!("cargo:rerun-if-env-changed=MPICC");
    #[cfg(feature = "mpi")]
    {
        let compiler = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
        if let Err(error) = check_same_mpi(&compiler) {
            eprintln!("error: {error}");
            std::process::exit(1);
        }
        cc::Build::new()
            .compiler(compiler)
            .file("src/transport/mpi/window/operations.c")
            .compile("tampi_operations");
    }
}

/// Checks that the bindings in this target folder were made with `compiler`: cargo does not make
/// them again when the compiler changes, so its description is kept beside them.
#[cfg(feature = "mpi")]
fn check_same_mpi(compiler: &str) -> Result<(), String> {
    use std::{env, fs, path::PathBuf, process::Command};

    let shown = Command::new(compiler).arg("-show").output();
    let shown = shown.map_err(|error| format!("MPICC: {compiler}: {error}"))?.stdout;
    let folder = env::var_os("OUT_DIR").map(PathBuf::from).ok_or("there is no OUT_DIR")?;
    let kept = folder.join("compiler");
    match fs::read(&kept) {
        Ok(before) if before != shown => Err(format!(
            "this target folder has bindings of another MPI than that of {compiler}: use one \
            target folder for each MPI (CARGO_TARGET_DIR), or clean this one (`cargo clean`)"
        )),
        _ => fs::write(&kept, shown).map_err(|error| format!("{}: {error}", kept.display())),
    }
}
