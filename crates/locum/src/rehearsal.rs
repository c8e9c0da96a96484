//! What only a rehearsal needs: time that hurries, and props beside a model on the network. Only
//! in debug builds: what people install has no such doors.
//!
//! `LOCUM_HURRY=N`: the clock runs N times as fast, so that waiting between tries takes no time.
//! `LOCUM_PROPS=FILE`: the tools of this script are there, whoever answers.

use std::path::Path;
use std::sync::Arc;

use locum_kernel::Time;
use locum_runtime::clock::{Clock, System};
use locum_runtime::provider::Task;
use locum_runtime::script::Script;

use crate::config::set;

pub(crate) fn clock() -> Arc<dyn Clock> {
    match told("LOCUM_HURRY").and_then(|times| times.parse().ok()) {
        Some(times) if times > 0 => Arc::new(Hurried { begun: System.now(), times }),
        Some(_) | None => Arc::new(System),
    }
}

pub(crate) fn props() -> Option<Script> {
    told("LOCUM_PROPS").and_then(|file| Script::read(Path::new(&file)).ok())
}

fn told(name: &str) -> Option<String> {
    cfg!(debug_assertions).then(|| set(name)).flatten()
}

#[derive(Debug)]
struct Hurried {
    begun: Time,
    times: u64,
}

impl Clock for Hurried {
    fn now(&self) -> Time {
        self.begun.plus_ms(System.now().since(self.begun).saturating_mul(self.times))
    }

    fn sleep_until(&self, moment: Time) -> Task<()> {
        // Rounded up: woken too early, somebody would have to wait again.
        let wait_ms = moment.since(self.now()).div_ceil(self.times);
        System.sleep_until(System.now().plus_ms(wait_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_hurries() {
        let times = 1_000;
        let hurried = Hurried { begun: System.now(), times };
        let tasks = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (before, until) = (System.now(), hurried.now().plus_ms(60_000));
        tasks.block_on(async { hurried.sleep_until(until).await });
        assert!(hurried.now() >= until);
        assert!(System.now().since(before) < 30_000, "a minute takes far less");
    }
}
