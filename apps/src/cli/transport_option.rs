//! The option that chooses the transport between ranks.

use std::ffi::OsStr;

use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, ValueEnum};
use ibverbs_sim::OfiChoice;
use ibverbs_sim::bootstrap::Fabric;

/// Transport between the ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Transport {
    /// Software verbs, with all ranks in this process
    #[default]
    Verbs,
    /// Software verbs over shared memory within a machine, and between machines over libfabric if all
    /// processes have a provider with a network, else TCP; `auto:PROVIDER` as in `ofi:PROVIDER`
    Auto,
    /// Software verbs over shared memory between processes of one machine
    Shm,
    /// Software verbs over TCP between processes
    Tcp,
    /// Software verbs over libfabric between processes; `ofi:PROVIDER` and `ofi:PROVIDER,iface=NAME`
    /// choose its provider and interface
    Ofi,
    /// MPI, with as many ranks in each process that mpirun has started
    Mpi,
}

impl Transport {
    pub(super) fn option(self) -> &'static str {
        match self {
            Self::Verbs => "--transport verbs",
            Self::Auto => "--transport auto",
            Self::Shm => "--transport shm",
            Self::Tcp => "--transport tcp",
            Self::Ofi => "--transport ofi",
            Self::Mpi => "--transport mpi",
        }
    }

    /// Returns the connections of processes that we connect.
    pub(super) fn fabric(self) -> Option<Fabric> {
        match self {
            Self::Auto => Some(Fabric::Auto),
            Self::Shm => Some(Fabric::Shm),
            Self::Tcp => Some(Fabric::Tcp),
            Self::Ofi => Some(Fabric::Ofi),
            Self::Verbs | Self::Mpi => None,
        }
    }
}

/// A transport, with the choice of a provider of libfabric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ChosenTransport {
    pub(super) transport: Transport,
    pub(super) choice: OfiChoice,
}

/// Parser of a [`ChosenTransport`].
#[derive(Clone, Debug)]
pub(super) struct TransportParser;

impl TypedValueParser for TransportParser {
    type Value = ChosenTransport;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<ChosenTransport, clap::Error> {
        let text = value.to_string_lossy();
        let with_choice = [("ofi:", Transport::Ofi), ("auto:", Transport::Auto)];
        let chosen = with_choice
            .into_iter()
            .find_map(|(name, transport)| Some((text.strip_prefix(name)?, transport)));
        let Some((choice, transport)) = chosen else {
            let names = EnumValueParser::<Transport>::new();
            let transport = names.parse_ref(command, argument, value)?;
            return Ok(ChosenTransport { transport, choice: OfiChoice::default() });
        };
        match choice.parse() {
            Ok(choice) => Ok(ChosenTransport { transport, choice }),
            Err(error) => {
                let mut refused = clap::Error::new(ErrorKind::ValueValidation).with_cmd(command);
                let argument = argument.map(ToString::to_string).unwrap_or_default();
                refused.insert(ContextKind::InvalidArg, ContextValue::String(argument));
                let text = ContextValue::String(format!("{text}: {error}"));
                refused.insert(ContextKind::InvalidValue, text);
                Err(refused)
            }
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = Transport::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        Some(Box::new(values))
    }
}
