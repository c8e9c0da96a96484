//! The two ways to be told to stop from outside.

use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Interrupt,
    Terminate,
}

impl Signal {
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }
}

/// Returns when one comes.
#[cfg(unix)]
pub(crate) async fn caught() -> io::Result<Signal> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => Ok(Signal::Interrupt),
        _ = terminate.recv() => Ok(Signal::Terminate),
    }
}

#[cfg(not(unix))]
pub(crate) async fn caught() -> io::Result<Signal> {
    tokio::signal::ctrl_c().await.map(|()| Signal::Interrupt)
}
