//! The only room with tasks, network and processes: it performs what the kernel says is owed.
