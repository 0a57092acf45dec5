//! Builds what the bindings of the `mpi` crate lack, with the compiler that they were built with.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/mpi/window/operations.c");
    println!("cargo:rerun-if-env-changed=MPICC");
    #[cfg(feature = "mpi")]
    cc::Build::new()
        .compiler(std::env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned()))
        .file("src/mpi/window/operations.c")
        .compile("tampi_operations");
}
