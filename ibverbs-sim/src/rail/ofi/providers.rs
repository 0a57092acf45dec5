#![allow(unsafe_code, reason = "records of the library are read")]
//! Providers: which there are, which can be used, and which is chosen.

use std::{
    fmt, fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::{
    OfiChoice, OfiError,
    abi::{self, Info},
    library::{self, Infos, Library},
};

/// Providers that may be chosen unasked, the best first.
const PREFERRED: [&str; 9] =
    ["cxi", "verbs;ofi_rxm", "efa", "psm3", "opx", "ucx", "tcp", "net", "tcp;ofi_rxm"];

/// Providers that exist only where their network does: others also run over sockets, which is no gain over
/// the rail of packets over TCP.
const OF_NETWORKS: [&str; 4] = ["cxi", "verbs;ofi_rxm", "efa", "opx"];

/// Folders of the kernel with the devices of those networks.
pub(super) const DEVICES: [&str; 2] = ["/sys/class/infiniband", "/sys/class/cxi"];

/// Providers that are not used, and why.
const REFUSED: [(&str, &str); 4] = [
    ("sockets", "it is deprecated, and has hung"),
    ("udp;ofi_rxd", "it is deprecated, and has hung"),
    ("udp", "it is deprecated, and has hung"),
    ("shm", "it joins processes of one machine only, which share memory anyway"),
];

/// Version of providers of libfabric 1.17.1, `FI_VERSION(117, 10)`.
const FREED_ONCE: u32 = 117 << 16 | 10;

/// Most bytes of a key of a provider.
const KEY_BYTES: usize = size_of::<u64>();

/// A provider of libfabric, and the reason for which it is not used, if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OfiProvider {
    /// Name of the provider.
    pub name: String,
    /// Interfaces that the provider runs on.
    pub interfaces: Vec<String>,
    /// Reason for which the provider is not used; `None` if it can be.
    pub refused: Option<&'static str>,
}

impl fmt::Display for OfiProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.refused {
            None => write!(f, "{} on {}", self.name, self.interfaces.join(", ")),
            Some(reason) => write!(f, "not {}: {reason}", self.name),
        }
    }
}

/// Providers of this machine, those that would be chosen first, first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OfiProviders {
    /// Version of libfabric.
    pub version: (u32, u32),
    /// The providers.
    pub all: Vec<OfiProvider>,
}

impl OfiProviders {
    /// Asks libfabric for its providers.
    ///
    /// **Errors**: libfabric is not installed, or too old.
    pub fn find() -> Result<Self, OfiError> {
        let library = Library::open()?;
        let all = list(&library.infos(None)?, &library.infos(Some(&needs(library)?))?);
        Ok(Self { version: (library.version >> 16, library.version & 0xffff), all })
    }

    /// Returns the provider that is chosen unasked.
    pub fn best(&self) -> Option<&OfiProvider> {
        let first = self.all.first();
        first.filter(|provider| {
            provider.refused.is_none() && preference(&provider.name) < PREFERRED.len()
        })
    }
}

/// Returns the record of the provider that is chosen, on the interface that is chosen, or else on the
/// one with an address.
pub(super) fn choose(choice: &OfiChoice, address: IpAddr) -> Result<Infos, OfiError> {
    // To open the library and list its providers takes tenths of a second of a core.
    if choice.is_of_networks && choice.provider.is_none() && !has_device(&DEVICES) {
        return Err(OfiError::NoDevice);
    }
    let library = Library::open()?;
    let usable = library.infos(Some(&needs(library)?))?;
    let all = list(&library.infos(None)?, &usable);
    let name = name_of(choice, &all)?;
    let positions: Vec<(usize, &Info)> = usable
        .iter()
        .enumerate()
        .filter(|(_, info)| library::provider(info).as_deref() == Some(name))
        .collect();
    let is_on = |info: &Info| {
        let wanted = choice.interface.as_deref();
        wanted.is_none_or(|wanted| library::interface(info).as_deref() == Some(wanted))
    };
    let suits = |info: &Info| match address_of(info) {
        Some(own) if own == address => 0,
        Some(IpAddr::V4(own)) if !own.is_loopback() => 1,
        None => 1,
        Some(_) => 2,
    };
    let found =
        positions.iter().filter(|(_, info)| is_on(info)).min_by_key(|(_, info)| suits(info));
    match found {
        Some((position, _)) => usable.nth(*position),
        None => Err(OfiError::NoSuchInterface {
            provider: name.to_owned(),
            name: choice.interface.clone().unwrap_or_default(),
            known: all
                .iter()
                .find(|provider| provider.name == name)
                .map_or_else(String::new, |provider| provider.interfaces.join(", ")),
        }),
    }
}

/// Returns `true` if one of the folders has an entry.
fn has_device(folders: &[&str]) -> bool {
    let has_entry = |folder: &&str| {
        let entries = fs::read_dir(folder);
        entries.is_ok_and(|mut entries| entries.next().is_some())
    };
    folders.iter().any(has_entry)
}

/// Returns the name of the provider that is chosen.
fn name_of<'a>(choice: &OfiChoice, all: &'a [OfiProvider]) -> Result<&'a str, OfiError> {
    let Some(wanted) = choice.provider.as_deref() else {
        let is_chosen = |name: &str| match choice.is_of_networks {
            true => OF_NETWORKS.contains(&name),
            false => preference(name) < PREFERRED.len(),
        };
        let best = all.iter().find(|it| it.refused.is_none() && is_chosen(&it.name));
        return best.map(|it| &*it.name).ok_or_else(|| {
            let reasons: Vec<_> = all.iter().map(OfiProvider::to_string).collect();
            OfiError::NoProvider { reasons: reasons.join("; ") }
        });
    };
    // The name of a layer may be left out.
    let is_named = |it: &&OfiProvider| {
        it.name == wanted || it.name.split_once(';').is_some_and(|(core, _)| core == wanted)
    };
    let usable = all.iter().filter(|it| it.refused.is_none());
    let named = usable.clone().filter(is_named).min_by_key(|it| it.name.len());
    let names = |all: &mut dyn Iterator<Item = &OfiProvider>| {
        all.map(|it| &*it.name).collect::<Vec<_>>().join(", ")
    };
    named.map(|it| &*it.name).ok_or_else(|| match all.iter().find(is_named) {
        Some(OfiProvider { name, refused: Some(reason), .. }) => OfiError::Refused {
            name: name.clone(),
            reason: (*reason).to_owned(),
            usable: names(&mut usable.clone()),
        },
        _ => OfiError::NoSuchProvider { name: wanted.to_owned(), known: names(&mut all.iter()) },
    })
}

/// Returns the place of a provider in the order of preference.
fn preference(name: &str) -> usize {
    PREFERRED.iter().position(|it| *it == name).unwrap_or(PREFERRED.len())
}

/// Returns the name of a provider, if it is one of those that are chosen unasked.
pub(super) fn known(name: &str) -> &'static str {
    PREFERRED.get(preference(name)).copied().unwrap_or("another provider")
}

/// Lists the providers that there are, given all records and those that fit what is needed.
fn list(all: &Infos, usable: &Infos) -> Vec<OfiProvider> {
    let mut providers: Vec<OfiProvider> = Vec::new();
    for info in usable.iter().chain(all.iter()) {
        let Some(name) = library::provider(info) else { continue };
        let position = providers.iter().position(|it| it.name == name);
        let position = position.unwrap_or_else(|| {
            let refused = reason(&name, all, usable);
            providers.push(OfiProvider { name, interfaces: Vec::new(), refused });
            providers.len() - 1
        });
        let interfaces = &mut providers[position].interfaces;
        let interface = library::interface(info);
        interfaces.extend(interface.filter(|interface| !interfaces.contains(interface)));
    }
    providers.sort_by_key(|it| (it.refused.is_some(), preference(&it.name)));
    providers
}

/// Returns the reason for which a provider is not used.
fn reason(name: &str, all: &Infos, usable: &Infos) -> Option<&'static str> {
    if let Some((_, reason)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        return Some(reason);
    }
    let is_its = |info: &&Info| library::provider(info).as_deref() == Some(name);
    if let Some(info) = usable.iter().find(is_its) {
        let is_too_long = domain(info).is_some_and(|domain| domain.mr_key_size > KEY_BYTES);
        return is_too_long.then_some("its keys are longer than 8 bytes");
    }
    let infos = || all.iter().filter(is_its);
    let is_rdm = |info: &&Info| endpoint_kind(info) == Some(abi::ENDPOINT_RDM);
    if !infos().any(|info| is_rdm(&info)) {
        return Some("it has no reliable datagrams");
    }
    let has = |caps: u64| infos().any(|info| is_rdm(&info) && info.caps & caps == caps);
    Some(if !has(abi::RMA) {
        "it has no RMA"
    } else if !has(abi::MULTI_RECV) {
        "it receives only one message into a buffer"
    } else {
        "it has not all that is needed at once"
    })
}

/// Returns what a provider must have.
fn needs(library: &'static Library) -> Result<Infos, OfiError> {
    let mut needs = library.empty()?;
    let info = needs.first_mut();
    info.caps = abi::MSG | abi::RMA | abi::MULTI_RECV;
    info.mode = abi::CONTEXT | abi::CONTEXT2;
    // SAFETY: the parts of a record that the library makes stay as long as that, and nobody has them.
    if let Some(endpoint) = unsafe { info.ep_attr.as_mut() } {
        endpoint.kind = abi::ENDPOINT_RDM;
    }
    // SAFETY: as above.
    if let Some(sent) = unsafe { info.tx_attr.as_mut() } {
        sent.msg_order = abi::ORDER_SAS;
    }
    // SAFETY: as above.
    if let Some(received) = unsafe { info.rx_attr.as_mut() } {
        received.msg_order = abi::ORDER_SAS;
    }
    // SAFETY: as above.
    if let Some(domain) = unsafe { info.domain_attr.as_mut() } {
        domain.threading = abi::THREAD_SAFE;
        domain.control_progress = abi::PROGRESS_MANUAL;
        domain.data_progress = abi::PROGRESS_MANUAL;
        domain.resource_mgmt = abi::RESOURCES_MANAGED;
        domain.av_type = abi::ADDRESSES_AS_TABLE;
        domain.mr_mode = abi::MR_LOCAL
            | abi::MR_VIRT_ADDR
            | abi::MR_ALLOCATED
            | abi::MR_PROV_KEY
            | abi::MR_ENDPOINT;
    }
    Ok(needs)
}

/// Returns `true` for the providers over TCP of libfabric 1.17.0: as an endpoint ends while bytes of a read arrive, they
/// free a record of that read twice (ofiwg/libfabric, pull request 8656).
pub(super) fn frees_twice(of: &Info) -> bool {
    // SAFETY: the parts of a record stay as long as that.
    let version = unsafe { of.fabric_attr.as_ref() }.map(|fabric| fabric.prov_version);
    library::provider(of).is_some_and(|name| ["net", "tcp;ofi_rxm"].contains(&&*name))
        && version.is_some_and(|version| version < FREED_ONCE)
}

/// Returns the properties of the domain of a record.
pub(super) fn domain(of: &Info) -> Option<&abi::DomainAttributes> {
    // SAFETY: the parts of a record stay as long as that.
    unsafe { of.domain_attr.as_ref() }
}

fn endpoint_kind(of: &Info) -> Option<u32> {
    // SAFETY: as above.
    unsafe { of.ep_attr.as_ref() }.map(|endpoint| endpoint.kind)
}

/// Returns the address of the interface of a record, if it is one of the internet.
fn address_of(info: &Info) -> Option<IpAddr> {
    let needed = match info.addr_format {
        abi::FORMAT_IPV4 => size_of::<libc::sockaddr_in>(),
        abi::FORMAT_IPV6 => size_of::<libc::sockaddr_in6>(),
        _ => return None,
    };
    if info.src_addr.is_null() || info.src_addrlen < needed {
        return None;
    }
    if info.addr_format == abi::FORMAT_IPV4 {
        // SAFETY: the address is of this format, and long enough.
        let address = unsafe { info.src_addr.cast::<libc::sockaddr_in>().read_unaligned() };
        return Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into());
    }
    // SAFETY: as above.
    let address = unsafe { info.src_addr.cast::<libc::sockaddr_in6>().read_unaligned() };
    Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_entries_has_no_device() {
        let folder = std::env::temp_dir().join(format!("ibverbs-sim-{}", std::process::id()));
        let path = folder.to_str().unwrap();
        assert!(!has_device(&[path, path]));
        fs::create_dir(&folder).unwrap();
        let is_empty = !has_device(&["/nowhere", path]);
        fs::write(folder.join("mlx5_0"), "").unwrap();
        let is_found = has_device(&["/nowhere", path]);
        fs::remove_dir_all(&folder).unwrap();
        assert!(is_empty && is_found);
    }

    #[test]
    fn a_provider_over_sockets_is_no_network_unless_it_is_named() {
        let provider = |name: &str| OfiProvider {
            name: name.to_owned(),
            interfaces: vec!["eth0".to_owned()],
            refused: None,
        };
        let all = ["verbs;ofi_rxm", "psm3", "tcp"].map(provider);
        let unasked = OfiChoice::default().of_networks();
        assert_eq!(name_of(&unasked, &all), Ok("verbs;ofi_rxm"));
        assert!(matches!(name_of(&unasked, &all[1..]), Err(OfiError::NoProvider { .. })));
        assert_eq!(name_of(&OfiChoice::default(), &all[1..]), Ok("psm3"));
        let named = "tcp".parse::<OfiChoice>().unwrap().of_networks();
        assert_eq!(name_of(&named, &all), Ok("tcp"));
    }
}
