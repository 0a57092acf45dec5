//! The rail on libfabric, between ends of one process, over TCP of this machine.

use std::sync::Arc;

use ibverbs_sim::{OfiChoice, OfiError, OfiProviders, OfiRail, Rail};

use super::{conformance, ends::Ends};

/// Returns the names of the providers over TCP that there are, none where libfabric is not installed.
pub(crate) fn providers() -> Vec<String> {
    match OfiProviders::find() {
        Ok(found) => {
            let usable = found.all.into_iter().filter(|provider| provider.refused.is_none());
            let names = usable.map(|provider| provider.name);
            names.filter(|name| ["tcp", "net", "tcp;ofi_rxm"].contains(&&**name)).collect()
        }
        Err(error) => {
            eprintln!("skipped: {error}");
            Vec::new()
        }
    }
}

/// Returns the choice of a provider, in the strict form that the environment asks for, in `IBVERBS_SIM_TEST_OFI`.
pub(crate) fn choice(provider: &str) -> OfiChoice {
    let forms = std::env::var("IBVERBS_SIM_TEST_OFI").ok();
    let choice = [provider].into_iter().chain(forms.as_deref()).collect::<Vec<_>>().join(",");
    choice.parse().unwrap()
}

/// Makes two rails on a provider.
pub(crate) fn pair(provider: &str) -> [Arc<dyn Rail>; 2] {
    let rails = OfiRail::mesh(2, &choice(provider)).unwrap();
    let rails: Vec<_> = rails.into_iter().map(|rail| Arc::new(rail) as Arc<dyn Rail>).collect();
    rails.try_into().unwrap_or_else(|_| panic!("two rails"))
}

#[test]
fn each_provider_keeps_the_rules_of_rails() {
    for provider in providers() {
        println!("{provider}");
        conformance::all(&mut Ends::new(pair(&provider)));
    }
}

#[test]
fn the_end_of_a_rail_is_the_loss_of_its_process() {
    for provider in providers() {
        println!("{provider}");
        let mut ends = Ends::new(pair(&provider));
        conformance::the_loss_of_a_peer_ends_what_is_under_way(&mut ends);
    }
}

#[test]
fn a_choice_that_there_is_not_is_named_with_what_there_is() {
    let Some(provider) = providers().into_iter().next() else { return };
    let error = |choice: &str| {
        let choice: OfiChoice = choice.parse().unwrap();
        OfiRail::mesh(2, &choice).err().unwrap()
    };
    let unknown = error("nonesuch");
    assert!(
        matches!(&unknown, OfiError::NoSuchProvider { name, known } if name == "nonesuch" && known.contains(&provider)),
        "{unknown}"
    );
    let interface = error(&format!("{provider},iface=nonesuch0"));
    assert!(
        matches!(&interface, OfiError::NoSuchInterface { name, known, .. } if name == "nonesuch0" && known.contains("lo")),
        "{interface}"
    );
    let refused = error("sockets");
    assert!(
        matches!(&refused, OfiError::Refused { reason, usable, .. } if reason.contains("deprecated") && usable.contains(&provider)),
        "{refused}"
    );
}

/// A provider that promises no more than some networks do.
#[test]
fn each_strict_form_keeps_the_rules_of_rails() {
    for provider in providers() {
        let plain = OfiRail::mesh(2, &provider.parse().unwrap()).unwrap();
        let reads_directly = plain[0].limits().long_bytes.is_some();
        for form in ["order", "full", "keys", "local", "endpoint", "order+full+keys+local"] {
            println!("{provider}, {form}");
            let choice = format!("{provider},strict={form}").parse().unwrap();
            let rails = OfiRail::mesh(2, &choice).unwrap();
            let reads_directly = reads_directly && form != "endpoint";
            assert_eq!(rails[0].limits().long_bytes.is_some(), reads_directly);
            let rails: Vec<_> =
                rails.into_iter().map(|rail| Arc::new(rail) as Arc<dyn Rail>).collect();
            let mut ends = Ends::new(rails.try_into().unwrap_or_else(|_| panic!("two rails")));
            conformance::all(&mut ends);
        }
    }
}

#[test]
fn what_is_not_used_has_a_reason() {
    let Ok(found) = OfiProviders::find() else { return };
    for provider in &found.all {
        println!("{provider}");
        assert_eq!(provider.refused.is_some(), provider.to_string().starts_with("not "));
    }
}
