//! Task-aware one-sided communication: put, get, atomics and syncs as tasks.
