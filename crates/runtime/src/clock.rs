//! The only clock. Time is an input everywhere else, so that a replay is exact.

use std::fmt::Debug;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use locum_kernel::Time;

use crate::provider::Task;

pub trait Clock: Debug + Send + Sync {
    fn now(&self) -> Time;

    /// Ends at that moment, or at once if it has passed.
    fn sleep_until(&self, moment: Time) -> Task<()>;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl Clock for System {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks the machine")]
    fn now(&self) -> Time {
        // A clock set before 1970 reads zero: wrong, but no reason to refuse work.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn sleep_until(&self, moment: Time) -> Task<()> {
        let wait_ms = moment.since(self.now());
        Box::pin(tokio::time::sleep(Duration::from_millis(wait_ms)))
    }
}

/// A moment as RFC 3339, in UTC, to the millisecond.
#[must_use]
pub fn rfc3339(moment: Time) -> String {
    let (seconds, ms) = (moment.0 / 1_000, moment.0 % 1_000);
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(day);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Year, month and day of a day since 1970. Counted in eras of 400 years that begin in March, so
/// that the leap day is the last day of a year and needs no special case.
fn civil(day: u64) -> (u64, u64, u64) {
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_read_as_dates() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_709_251_199_001, "2024-02-29T23:59:59.001Z"),
            (1_735_689_600_000, "2025-01-01T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ];
        for (ms, text) in cases {
            assert_eq!(rfc3339(Time(ms)), text);
        }
    }
}
