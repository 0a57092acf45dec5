//! Runs of tests in virtual time, or with other workers, if the environment asks for that.

use std::sync::Arc;

use ibverbs_sim::LinkModel;
use talpf_runtime::VirtualTime;
use tampi_shim::Config;

/// Returns the settings of a test, or those of the same run in virtual time with the link model that
/// the variable `TALPF_TEST_LINK` names, and with as many workers for each rank alone as
/// `TALPF_TEST_WORKERS_PER_RANK` says.
pub(crate) fn in_requested_time(mut config: Config) -> Config {
    if let Ok(link) = std::env::var("TALPF_TEST_LINK")
        && config.device.fault.is_none()
        && config.device.link.is_none()
    {
        config.device.link = Some(LinkModel::parse(&link).expect("a link model"));
        let costs = Arc::default();
        config.runtime.virtual_time = Some(VirtualTime { cores: 2, costs, task_overhead_ns: 0 });
    }
    let each = std::env::var("TALPF_TEST_WORKERS_PER_RANK").ok();
    let each: Option<usize> = each.map(|each| each.parse().expect("a number of workers"));
    // Of runs of many ranks the number of ranks is what matters.
    if let Some(each) = each.filter(|_| (1..=64).contains(&config.ranks)) {
        config.runtime.workers = config.ranks as usize * each;
        config.runtime.worker_sets = config.ranks as usize;
    }
    config
}
