//! When to come back: `Retry-After`, as seconds or as a date.

use locum_kernel::Time;

/// Milliseconds to wait from `now` on. None if it says nothing that can be read.
pub(crate) fn retry_after_ms(value: &str, now: Time) -> Option<u64> {
    let value = value.trim();
    if let Some((whole, parts)) = value.split_once('.')
        && parts.bytes().all(|digit| digit.is_ascii_digit())
    {
        // Some send fractions; a whole second more is never too early.
        return seconds(whole)?.checked_add(1)?.checked_mul(1_000);
    }
    if let Some(seconds) = seconds(value) {
        return seconds.checked_mul(1_000);
    }
    date(value).map(|moment| moment.since(now))
}

fn seconds(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `Sun, 06 Nov 1994 08:49:37 GMT`, the one form that may still be sent.
fn date(text: &str) -> Option<Time> {
    let (_, rest) = text.split_once(", ")?;
    let mut words = rest.split_ascii_whitespace();
    let day = seconds(words.next()?)?;
    let month = words.next()?;
    let month = (1u64..).zip(MONTHS).find(|(_, name)| *name == month)?.0;
    let year = seconds(words.next()?)?;
    let mut time = words.next()?.split(':');
    let (hour, minute, second) =
        (seconds(time.next()?)?, seconds(time.next()?)?, seconds(time.next()?)?);
    let zone = words.next()? == "GMT" && words.next().is_none() && time.next().is_none();
    let sound = (1..=31).contains(&day) && (1970..=9999).contains(&year);
    if !zone || !sound || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let of_day = hour * 3_600 + minute * 60 + second;
    Some(Time((days_before(year, month) + day - 1) * 86_400_000 + of_day * 1_000))
}

/// Days from 1970 to the first of a month.
fn days_before(year: u64, month: u64) -> u64 {
    // Years that begin in March have their leap day last, where it changes no other month.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year / 4 - year / 100 + year / 400;
    let days = year * 365 + leaps + (153 * month + 2) / 5;
    // The first of March of the year nought is this many days before 1970.
    days.saturating_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::rfc3339;

    #[test]
    fn seconds_and_dates() {
        let now = Time(784_111_777_000);
        let cases = [
            ("0", Some(0)),
            (" 12 ", Some(12_000)),
            ("1.5", Some(2_000)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10_000)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:47 CET", None),
            ("soon", None),
            ("-1", None),
            ("", None),
            ("99999999999999999999", None),
            ("18446744073709551615", None),
            ("Sun, 99 Nov 1994 08:49:47 GMT", None),
            ("Sun, 06 Now 1994 08:49:47 GMT", None),
        ];
        for (value, expected) in cases {
            assert_eq!(retry_after_ms(value, now), expected, "{value:?}");
        }
    }

    #[test]
    fn dates_are_those_the_clock_prints() {
        for (text, printed) in [
            ("Tue, 29 Feb 2000 00:00:00 GMT", "2000-02-29T00:00:00.000Z"),
            ("Thu, 01 Jan 1970 00:00:00 GMT", "1970-01-01T00:00:00.000Z"),
            ("Wed, 01 Mar 2100 12:30:15 GMT", "2100-03-01T12:30:15.000Z"),
            ("Sat, 31 Dec 2044 23:59:59 GMT", "2044-12-31T23:59:59.000Z"),
        ] {
            assert_eq!(rfc3339(date(text).unwrap()), printed);
        }
    }
}
