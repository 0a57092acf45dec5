//! Errors of the rail on libfabric.

/// Reason for which a network cannot be used by libfabric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OfiError {
    /// The library is not installed, or cannot be loaded.
    #[error("libfabric cannot be loaded: {reason}")]
    NoLibrary {
        /// Text of the dynamic linker.
        reason: String,
    },
    /// The library lacks a function.
    #[error("libfabric.so.1 has no {symbol} of {version}; libfabric 1.17 or later is needed")]
    NoSymbol {
        /// Name of the function.
        symbol: &'static str,
        /// Version of the symbol.
        version: &'static str,
    },
    /// The library is too old.
    #[error("libfabric has the interface {major}.{minor}; 1.17 or later is needed")]
    OldLibrary {
        /// First number of the version.
        major: u32,
        /// Second number of the version.
        minor: u32,
    },
    /// The choice of a provider cannot be read.
    #[error("{text:?} is no choice of a provider: expected PROVIDER[,iface=NAME]")]
    Choice {
        /// The text.
        text: String,
    },
    /// No provider has the name.
    #[error("libfabric has no provider {name:?}; it has {known}")]
    NoSuchProvider {
        /// The name.
        name: String,
        /// Names of all providers.
        known: String,
    },
    /// The provider cannot do what is needed, or is refused.
    #[error("the provider {name} of libfabric is not used: {reason}; usable: {usable}")]
    Refused {
        /// Name of the provider.
        name: String,
        /// The reason.
        reason: String,
        /// Names of the providers that can be used.
        usable: String,
    },
    /// The provider does not run on the interface.
    #[error("the provider {provider} of libfabric has no interface {name:?}; it has {known}")]
    NoSuchInterface {
        /// Name of the provider.
        provider: String,
        /// Name of the interface.
        name: String,
        /// Names of its interfaces.
        known: String,
    },
    /// The machine has no device of a network, for which a provider would be chosen unasked.
    #[error("this machine has no device of a network in {}", super::providers::DEVICES.join(" or "))]
    NoDevice,
    /// No provider can be used.
    #[error("libfabric has no provider that can be used: {reasons}")]
    NoProvider {
        /// Reasons, by provider.
        reasons: String,
    },
    /// A call of the library has failed.
    #[error("{call} of libfabric, provider {provider}: {reason}")]
    Call {
        /// Name of the function.
        call: &'static str,
        /// Name of the provider, if one was chosen before.
        provider: String,
        /// Text of the library.
        reason: String,
    },
    /// The operating system has refused what the rail needs.
    #[error("{what} for libfabric: {reason}")]
    System {
        /// Name of the thing that was refused.
        what: &'static str,
        /// Text of the operating system.
        reason: String,
    },
    /// Processes have not answered in time.
    #[error("no answer by libfabric, provider {provider}, from {processes}")]
    NoAnswer {
        /// Name of the provider.
        provider: String,
        /// The processes.
        processes: String,
    },
}
