//! The records have the sizes and offsets that the C compiler finds in the headers of PMIx.

use std::{
    env::consts::ARCH,
    mem::{offset_of, size_of},
    path::Path,
};

use super::*;
use crate::c_headers::{Number, are_those_of, constants, record};

fn numbers() -> Vec<Number> {
    let mut all = Vec::new();
    record!(all, Process.whole, "pmix_proc", nspace, number = "rank");
    record!(all, Bytes.whole, "pmix_byte_object", bytes, size);
    record!(all, Value.whole, "pmix_value", kind = "type", data);
    record!(all, Info.whole, "pmix_info", key, flags, value);
    constants!(
        all,
        SUCCESS = "PMIX_SUCCESS",
        TIMED_OUT = "PMIX_ERR_TIMEOUT",
        NOT_FOUND = "PMIX_ERR_NOT_FOUND",
        ALL = "PMIX_RANK_WILDCARD",
        GLOBAL = "PMIX_GLOBAL",
        BOOL = "PMIX_BOOL",
        INT = "PMIX_INT",
        UINT32 = "PMIX_UINT32",
        BYTES = "PMIX_BYTE_OBJECT",
        JOB_BYTES = "PMIX_MAX_NSLEN + 1",
        KEY_BYTES = "PMIX_MAX_KEYLEN + 1",
    );
    let kinds = ["pmix_status_t", "pmix_scope_t", "pmix_data_type_t", "pmix_rank_t"];
    let sizes = [size_of::<Status>(), size_of_val(&GLOBAL), size_of_val(&BYTES), size_of_val(&ALL)];
    all.extend(kinds.map(|kind| format!("sizeof({kind})")).into_iter().zip(sizes));
    let keys = [
        ("PMIX_JOB_SIZE", JOB_SIZE),
        ("PMIX_COLLECT_DATA", COLLECT),
        ("PMIX_TIMEOUT", TIMEOUT),
        ("PMIX_IMMEDIATE", IMMEDIATE),
    ];
    for (name, key) in keys {
        all.push((format!("__builtin_strcmp({name}, {:?})", key.to_str().unwrap()), 0));
    }
    all
}

#[test]
fn records_and_constants_are_those_of_the_headers() {
    let of_debian = format!("/usr/lib/{ARCH}-linux-gnu/pmix2/include");
    let folder = if Path::new(&of_debian).exists() { &of_debian } else { "/usr/include" };
    are_those_of("PMIx", folder, &["pmix.h".to_owned()], &numbers());
}
