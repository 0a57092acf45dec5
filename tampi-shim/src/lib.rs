//! Task-aware two-sided messages: the place of the TAMPI interface. It holds nothing yet.
