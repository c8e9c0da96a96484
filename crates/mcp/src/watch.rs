//! Sees to it that a program and its connection end together, and knows why they did.

use std::sync::Arc;
use std::time::Duration;

use tokio::process::{Child, ChildStderr};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::logs::Logs;
use crate::process;

/// The ends of the lines between a connection, its transport and its watcher.
pub(crate) struct Lines {
    pub(crate) closed: watch::Receiver<bool>,
    pub(crate) quit: watch::Receiver<Option<String>>,
    pub(crate) ended: watch::Sender<Option<String>>,
}

pub(crate) struct Program {
    pub(crate) child: Child,
    pub(crate) group: process::Group,
    pub(crate) stderr: ChildStderr,
    pub(crate) logs: Arc<Logs>,
}

impl Program {
    /// Sees to it that program and connection end together, and knows why.
    pub(crate) async fn watch(mut self, lines: Lines) {
        const LAST_WORDS: Duration = Duration::from_millis(300);
        let mut log = std::pin::pin!(process::read_log(self.stderr, Arc::clone(&self.logs)));
        let mut log_ended = false;
        let why = loop {
            tokio::select! {
                () = &mut log, if !log_ended => log_ended = true,
                status = self.child.wait() => {
                    // Its last answers may still be in the pipe.
                    let _read = timeout(LAST_WORDS, closed(lines.closed.clone())).await;
                    break Ok(status.ok());
                }
                () = closed(lines.closed.clone()) => {
                    let status = timeout(LAST_WORDS, self.child.wait()).await;
                    break Ok(status.ok().and_then(Result::ok));
                }
                why = over(lines.quit.clone()) => {
                    process::leave(&mut self.child, &self.group).await;
                    break Err(why);
                }
            }
        };
        drop(self.group);
        if !log_ended {
            let _read = timeout(LAST_WORDS, log).await;
        }
        let why = why.map_or_else(|why| why, |status| process::ending(status, &self.logs));
        lines.ended.send_replace(Some(why));
    }
}

pub(crate) async fn watch_far(lines: Lines) {
    let why = tokio::select! {
        () = closed(lines.closed.clone()) => "it closed the connection".to_owned(),
        why = over(lines.quit.clone()) => why,
    };
    lines.ended.send_replace(Some(why));
}

/// Until it is over, or for ever if nobody is left to say so.
pub(crate) async fn over(mut ended: watch::Receiver<Option<String>>) -> String {
    match ended.wait_for(Option::is_some).await {
        Ok(why) => why.clone().unwrap_or_default(),
        Err(_) => "the connection was closed".to_owned(),
    }
}

/// Nothing more comes; also if whoever would say so is gone.
async fn closed(mut closed: watch::Receiver<bool>) {
    let _gone = closed.wait_for(|closed| *closed).await;
}
