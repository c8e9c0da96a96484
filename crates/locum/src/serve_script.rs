//! `locum script-server`: the scripted model as a server, until somebody ends it.

use std::io;
use std::sync::Arc;

use locum_runtime::clock::System;
use locum_runtime::script::Script;
use locum_web::script_server;
use tokio::net::TcpListener;

use crate::complaint::Complaint;
use crate::flags::ScriptServer;
use crate::print;
use crate::signal;

pub(crate) fn serve(flags: &ScriptServer) -> Result<u8, Complaint> {
    let script = Script::read(&flags.file).map_err(|error| Complaint::script(&error))?;
    // Answers are made in no time and then waited for, which one thread can do for everybody.
    let tasks = tokio::runtime::Builder::new_current_thread().enable_all().build();
    tasks.map_err(|error| Complaint::machine(&error))?.block_on(listen(&flags.listen, script))
}

async fn listen(address: &str, script: Script) -> Result<u8, Complaint> {
    let failed = |error: io::Error| Complaint::listen(address, &error);
    // Before anybody is told that we are here, so that they can end us.
    let end = signal::listen().map_err(|error| Complaint::machine(&error))?;
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    print::line(&format!("listening on http://{bound}"));
    tokio::select! {
        never = script_server::serve(listener, script, Arc::new(System)) => match never {},
        signal = end => Ok(signal.exit_code()),
    }
}
