//! Task-aware two-sided messages.
