//! Known faults of releases of MPI in one-sided communication, with the environment variables that
//! avoid them.
//!
//! Calls that would lose bytes silently, or crash the program, are errors instead. The variables
//! are not set here: they slow other operations down on some networks.

/// Returns the reason for which puts of the MPI with this version string are lost, if they are.
///
/// **Source**: pull request 6140 of pmodels/mpich, in 4.1.
pub(super) fn of_puts(
    version: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<&'static str> {
    let number = after(version, "MPICH Version:")?;
    let is_early = ["3.", "4.0"].iter().any(|early| number.starts_with(early));
    let is_off =
        |value: String| matches!(&*value.to_lowercase(), "n" | "no" | "0" | "off" | "false");
    let over_ucx = after(version, "MPICH Device:")?.starts_with("ch4:ucx");
    let is_safe = variable("UCX_RCACHE_ENABLE").is_some_and(is_off);
    (is_early && over_ucx && !is_safe)
        .then_some("MPICH before 4.1 loses puts over UCX: set UCX_RCACHE_ENABLE=n")
}

/// Returns the reason for which a rank must not swap an element of its own, if there is one.
pub(super) fn of_own_swaps(
    version: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<&'static str> {
    let is_safe = variable("OMPI_MCA_osc").is_some_and(|components| components != "rdma");
    (version.starts_with("Open MPI v4.") && !is_safe).then_some(
        "Open MPI 4 crashes when a rank swaps an element of its own: set OMPI_MCA_osc=^rdma",
    )
}

/// Returns the text after `name`.
fn after<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    Some(text.split_once(name)?.1.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN_MPICH: &str =
        "MPICH Version:\t4.0.2\nMPICH ABI:\t14:2:2\nMPICH Device:\tch4:ucx\n";
    const DEBIAN_OPEN_MPI: &str = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4";

    fn unset(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn mpich_over_ucx_is_to_do_without_its_cache() {
        assert!(of_puts(DEBIAN_MPICH, unset).is_some_and(|why| why.contains("UCX_RCACHE_ENABLE")));
        for (value, is_safe) in [("n", true), ("No", true), ("0", true), ("y", false), ("", false)]
        {
            let found = of_puts(DEBIAN_MPICH, |name| {
                assert_eq!(name, "UCX_RCACHE_ENABLE");
                Some(value.to_owned())
            });
            assert_eq!(found.is_none(), is_safe, "{value}");
        }
        for sound in [("4.0.2", "4.1.1"), ("4.0.2", "4.10.0"), ("ucx", "ofi"), ("MPICH", "X")] {
            assert!(of_puts(&DEBIAN_MPICH.replace(sound.0, sound.1), unset).is_none(), "{sound:?}");
        }
        assert!(of_puts(DEBIAN_OPEN_MPI, unset).is_none());
    }

    #[test]
    fn open_mpi_is_to_swap_by_another_component() {
        assert!(of_own_swaps(DEBIAN_OPEN_MPI, unset).is_some());
        assert!(of_own_swaps(DEBIAN_OPEN_MPI, |_| Some("^rdma".to_owned())).is_none());
        assert!(of_own_swaps(DEBIAN_OPEN_MPI, |_| Some("rdma".to_owned())).is_some());
        assert!(of_own_swaps("Open MPI v5.0.3, package", unset).is_none());
        assert!(of_own_swaps(DEBIAN_MPICH, unset).is_none());
    }
}
