//! The HTTP face: it shows the kernel's `View` to browsers and programs and carries words back.
