//! The terminal face: it draws the kernel's `View` and knows nothing of how it came to be.
