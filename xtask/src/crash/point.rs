//! A crash point: in which act, and how the processes from then on die, one after the other. Its
//! text is how it is played again.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context as _, Error, Result, bail};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) act: usize,
    pub(crate) deaths: Vec<Death>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// The Nth append and those after it never reach the disk.
    Before(u64),
    /// The Nth append reaches the disk and nobody is told.
    After(u64),
    /// After so many milliseconds.
    Kill(u64),
    /// At the Nth write or sync of the journal's files.
    Syscall(u64),
}

impl Point {
    /// Nobody dies.
    pub(crate) fn none() -> Point {
        Point { act: 0, deaths: Vec::new() }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.act)?;
        for death in &self.deaths {
            match death {
                Death::Before(number) => write!(f, ",before:{number}")?,
                Death::After(number) => write!(f, ",after:{number}")?,
                Death::Kill(ms) => write!(f, ",kill:{ms}")?,
                Death::Syscall(number) => write!(f, ",syscall:{number}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Point {
    type Err = Error;

    fn from_str(text: &str) -> Result<Point> {
        let mut words = text.split(',');
        let act =
            words.next().unwrap_or_default().parse().context("a point begins with its act")?;
        let mut deaths = Vec::new();
        for word in words {
            let (kind, number) =
                word.split_once(':').with_context(|| format!("{word}: no death"))?;
            let number = number.parse().with_context(|| format!("{word}: no number"))?;
            deaths.push(match kind {
                "before" => Death::Before(number),
                "after" => Death::After(number),
                "kill" => Death::Kill(number),
                "syscall" => Death::Syscall(number),
                _ => bail!("{word}: no death"),
            });
        }
        Ok(Point { act, deaths })
    }
}

/// Numbers that look random and are the same for the same seed.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64, name: &str) -> Dice {
        let mix = |seed: u64, byte: u8| (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Dice(name.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, mix))
    }

    /// From zero up to `max`, both included.
    pub(crate) fn up_to(&mut self, max: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % (max.saturating_add(1)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::{Death, Point};

    #[test]
    fn a_point_is_its_text() {
        let deaths = vec![Death::Before(3), Death::After(1), Death::Kill(20), Death::Syscall(7)];
        let point = Point { act: 1, deaths };
        assert_eq!(point.to_string(), "1,before:3,after:1,kill:20,syscall:7");
        assert_eq!(point.to_string().parse::<Point>().ok(), Some(point));
        for wrong in ["", "x", "0,kill", "0,kill:x", "0,sleep:3"] {
            assert!(wrong.parse::<Point>().is_err(), "{wrong}");
        }
    }
}
