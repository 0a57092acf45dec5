//! Choice of a provider, and of its interface.

use std::{fmt, str::FromStr};

use super::{
    OfiError,
    strict::{NoForms, Strict},
};

/// Choice of the provider of libfabric that a rail runs on, and of an interface: `tcp`,
/// `tcp,iface=eth0`, `iface=eth0`, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OfiChoice {
    /// Name of the provider; `None` for the best one.
    pub provider: Option<String>,
    /// Name of the interface, as libfabric calls it; `None` for the one with the address of this
    /// machine.
    pub interface: Option<String>,
    /// Forms in which the provider is stricter than it is, for tests.
    pub(super) strict: Strict,
    /// `true` if only a provider with a network of its own is chosen unasked.
    pub(super) is_of_networks: bool,
}

/// Most bytes of a name.
const MAX_NAME: usize = 64;

impl OfiChoice {
    /// Returns this choice, of nothing but providers with a network of their own, unless one is named.
    pub(crate) fn of_networks(self) -> Self {
        Self { is_of_networks: true, ..self }
    }
}

impl FromStr for OfiChoice {
    type Err = OfiError;

    fn from_str(text: &str) -> Result<Self, OfiError> {
        let mut choice = Self::default();
        let refused = || OfiError::Choice { text: text.to_owned() };
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let (field, name) = match part.split_once('=') {
                _ if !choice.strict.is_none() => return Err(refused()),
                Some(("strict", forms)) => {
                    choice.strict = forms.parse().map_err(|NoForms| refused())?;
                    continue;
                }
                Some(("iface", name)) => (&mut choice.interface, name),
                None if choice.interface.is_none() => (&mut choice.provider, part),
                _ => return Err(refused()),
            };
            let is_name = (1..=MAX_NAME).contains(&name.len()) && field.is_none();
            *field = Some(name.to_owned()).filter(|_| is_name);
            field.as_ref().ok_or_else(refused)?;
        }
        Ok(choice)
    }
}

impl fmt::Display for OfiChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interface = self.interface.as_ref().map(|name| format!("iface={name}"));
        let strict = (!self.strict.is_none()).then(|| format!("strict={}", self.strict));
        let parts: Vec<_> =
            [self.provider.clone(), interface, strict].into_iter().flatten().collect();
        f.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_come_back() {
        for text in [
            "",
            "tcp",
            "tcp;ofi_rxm",
            "tcp,iface=eth0",
            "iface=eth0",
            "strict=full",
            "tcp,iface=lo,strict=order+keys",
        ] {
            assert_eq!(text.parse::<OfiChoice>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_text_that_is_no_choice_is_named() {
        let long = "x".repeat(MAX_NAME + 1);
        for text in [
            ",",
            "tcp,",
            "tcp,eth0",
            "iface=",
            "iface=a,iface=b",
            "iface=a,tcp",
            "a=b",
            "strict=",
            "strict=full,tcp",
            "strict=full,strict=order",
            &long,
        ] {
            let error = text.parse::<OfiChoice>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{text:?} is no choice")), "{error}");
        }
        assert!(long[1..].parse::<OfiChoice>().is_ok());
    }
}
