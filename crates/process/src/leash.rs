//! What goes over the leash, the socket between us and a keeper. To the keeper: what is to run,
//! then single letters. From the keeper: lines. Both ends are always the same program, so this is
//! no format that lasts.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

/// The variable that marks all processes of a command.
pub(crate) const MARK: &str = "LOCUM_KEEP";

/// Ask the command to end.
pub(crate) const TERM: u8 = b't';
/// Kill all. The end of the leash means the same.
pub(crate) const KILL: u8 = b'k';

/// The system takes no more than 2 MiB of arguments and environment.
const ORDER_BYTES_MAX: usize = 16 << 20;

/// What is to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: PathBuf,
    pub(crate) terminal: bool,
    /// Empty: errors go where the output goes.
    pub(crate) errors: PathBuf,
}

impl Order {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        put(&mut body, if self.terminal { b"t" } else { b"p" });
        put(&mut body, self.cwd.as_os_str().as_bytes());
        put(&mut body, self.errors.as_os_str().as_bytes());
        put(&mut body, &self.argv.len().to_le_bytes());
        for word in &self.argv {
            put(&mut body, word.as_bytes());
        }
        for (name, value) in &self.env {
            put(&mut body, name.as_bytes());
            put(&mut body, value.as_bytes());
        }
        let mut frame = body.len().to_le_bytes().to_vec();
        frame.append(&mut body);
        frame
    }

    pub(crate) fn read(mut from: impl Read) -> io::Result<Order> {
        let mut length = [0; size_of::<usize>()];
        from.read_exact(&mut length)?;
        let length = usize::from_le_bytes(length);
        if length > ORDER_BYTES_MAX {
            return Err(io::ErrorKind::ArgumentListTooLong.into());
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body)?;
        Order::decode(&body).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn decode(mut body: &[u8]) -> Option<Order> {
        let mut order = Order { terminal: take(&mut body)? == b"t", ..Order::default() };
        order.cwd = PathBuf::from(OsStr::from_bytes(take(&mut body)?));
        order.errors = PathBuf::from(OsStr::from_bytes(take(&mut body)?));
        let words = usize::from_le_bytes(take(&mut body)?.try_into().ok()?);
        for _ in 0..words {
            order.argv.push(OsString::from_vec(take(&mut body)?.to_vec()));
        }
        while !body.is_empty() {
            let name = OsString::from_vec(take(&mut body)?.to_vec());
            order.env.push((name, OsString::from_vec(take(&mut body)?.to_vec())));
        }
        Some(order)
    }
}

fn put(body: &mut Vec<u8>, field: &[u8]) {
    body.extend(field.len().to_le_bytes());
    body.extend(field);
}

fn take<'a>(body: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = body.split_at_checked(size_of::<usize>())?;
    let (field, rest) = rest.split_at_checked(usize::from_le_bytes(length.try_into().ok()?))?;
    *body = rest;
    Some(field)
}

/// What a keeper says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tidings {
    /// It is in place and waits for the order.
    Ready,
    /// There is no namespace to be had.
    Refused,
    Started,
    /// The command could not be started, with the system's number for why.
    Failed(i32),
    Ended(Ended),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) how: How,
    pub(crate) left: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Code(i32),
    Signal(i32),
    /// All were killed because we said so.
    Told,
    /// All were killed because they were too many.
    Crowded,
}

impl Tidings {
    pub(crate) fn tell(self, mut to: impl Write) -> io::Result<()> {
        let line = match self {
            Tidings::Ready => "ready 0 0\n".to_owned(),
            Tidings::Refused => "refused 0 0\n".to_owned(),
            Tidings::Started => "started 0 0\n".to_owned(),
            Tidings::Failed(number) => format!("failed {number} 0\n"),
            Tidings::Ended(Ended { how: How::Code(code), left }) => format!("code {code} {left}\n"),
            Tidings::Ended(Ended { how: How::Signal(signal), left }) => {
                format!("signal {signal} {left}\n")
            }
            Tidings::Ended(Ended { how: How::Told, left }) => format!("told 0 {left}\n"),
            Tidings::Ended(Ended { how: How::Crowded, left }) => format!("crowded 0 {left}\n"),
        };
        to.write_all(line.as_bytes())
    }

    pub(crate) fn parse(line: &str) -> Option<Tidings> {
        let mut words = line.split_whitespace();
        let (kind, number, left) = (words.next()?, words.next()?, words.next()?);
        let (number, left) = (number.parse().ok()?, left.parse().ok()?);
        Some(match kind {
            "ready" => Tidings::Ready,
            "refused" => Tidings::Refused,
            "started" => Tidings::Started,
            "failed" => Tidings::Failed(number),
            "code" => Tidings::Ended(Ended { how: How::Code(number), left }),
            "signal" => Tidings::Ended(Ended { how: How::Signal(number), left }),
            "told" => Tidings::Ended(Ended { how: How::Told, left }),
            "crowded" => Tidings::Ended(Ended { how: How::Crowded, left }),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_tidings_arrive_as_they_were_sent() {
        let order = Order {
            argv: vec!["sh".into(), OsString::from_vec(vec![0xff, 0xfe]), "".into()],
            env: vec![("A".into(), "1=2\n".into()), ("B".into(), "".into())],
            cwd: "/tmp".into(),
            terminal: true,
            errors: "/tmp/errors".into(),
        };
        assert_eq!(Order::read(&order.encode()[..]).unwrap(), order);
        for cut in 0..order.encode().len() {
            assert!(Order::read(&order.encode()[..cut]).is_err());
        }
        for how in [How::Code(-1), How::Signal(9), How::Told, How::Crowded] {
            let tidings = Tidings::Ended(Ended { how, left: 7 });
            let mut line = Vec::new();
            tidings.tell(&mut line).unwrap();
            assert_eq!(Tidings::parse(&String::from_utf8(line).unwrap()), Some(tidings));
        }
    }
}
