//! `domain:example.com` as a pattern of calls that go to the network: the machine that an address
//! names, whatever port and path. `domain:*.example.com` is every machine below that name.
//!
//! Programs do not agree on what an odd address means, so one that is not plain is never admitted,
//! and is never let past a deny without asking.

use alloc::string::String;
use alloc::vec::Vec;

use super::pattern::{Fit, matches};

const MARK: &str = "domain:";

/// The name in such a pattern; `None`: it is a pattern of another kind.
pub(super) fn named(pattern: &str) -> Option<String> {
    let start = pattern.get(..MARK.len())?;
    let name = start.eq_ignore_ascii_case(MARK).then(|| pattern[MARK.len()..].trim())?;
    // Not so of `*.`, which would become everything.
    let name = name.strip_suffix('.').filter(|rest| *rest != "*").unwrap_or(name);
    Some(name.to_lowercase())
}

/// For an allow: surely this machine. A star is the first part of a name or all of it.
pub(super) fn admits(name: &str, address: &str) -> bool {
    let Some(host) = plain(address) else { return false };
    match name.strip_prefix("*.") {
        _ if name == "*" => true,
        Some(parent) if is_name(parent) => is_below(&host, parent),
        Some(_) => false,
        None => is_name(name) && host == name,
    }
}

/// For a deny or an ask: in any spelling. What `*.example.com` says of `example.com` itself people
/// read in two ways, so the stricter one holds.
pub(super) fn meets(name: &str, address: &str) -> Fit {
    let is_meant = |host: &str| match name.strip_prefix("*.") {
        Some(parent) => host == parent || is_below(host, parent) || matches(name, host),
        None => matches(name, host),
    };
    match lenient(address) {
        Some(host) if is_meant(&host) => Fit::Yes,
        // A number can stand for any name, and only asking the network would tell.
        Some(host) if is_name(&host) && !is_number(&host) => Fit::No,
        Some(_) | None => Fit::Maybe,
    }
}

/// Whether a pattern, of this kind or of whole addresses, may speak of the place an address is at.
pub(super) fn is_about(pattern: &str, address: &str) -> bool {
    let host = named(pattern).or_else(|| lenient(pattern).filter(|_| pattern.contains("://")));
    let (Some(said), Some(host)) = (host, lenient(address)) else { return true };
    let bare = |host: &str| String::from(host.strip_prefix("www.").unwrap_or(host));
    said.contains(['*', '?']) || bare(&said) == bare(&host)
}

fn is_below(host: &str, parent: &str) -> bool {
    host.strip_suffix(parent).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

/// The name of the machine, if everybody reads the address in the same way.
fn plain(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let known = ["http", "https"].iter().any(|it| scheme.eq_ignore_ascii_case(it));
    if !known {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (host, port) = authority.split_once(':').unwrap_or((authority, "0"));
    let host = host.strip_suffix('.').unwrap_or(host);
    let fits = !port.is_empty() && port.bytes().all(|sign| sign.is_ascii_digit());
    (fits && is_name(host)).then(|| host.to_ascii_lowercase())
}

/// The name of the machine as the most forgiving reader would find it.
fn lenient(address: &str) -> Option<String> {
    let kept = address.chars().filter(|sign| !matches!(sign, '\t' | '\n' | '\r'));
    let text: String = kept.map(|sign| if sign == '\\' { '/' } else { sign }).collect();
    let text = text.trim_matches(|sign: char| sign <= ' ' || sign.is_whitespace());
    let (_, rest) = text.split_once(':')?;
    let rest = rest.trim_start_matches('/');
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|sign| sign.is_ascii_digit()) => host,
        Some(_) | None => host,
    };
    let host = unescaped(host)?;
    Some(host.trim_end_matches('.').to_lowercase())
}

/// `ex%61mple.com` is `example.com` to those who fetch it.
fn unescaped(host: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), host.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| core::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).ok()
}

/// Letters, digits and dashes between dots: what needs no interpretation.
fn is_name(host: &str) -> bool {
    let fits = |part: &str| {
        let sign = |sign: u8| sign.is_ascii_alphanumeric() || sign == b'-' || sign == b'_';
        !part.is_empty() && part.bytes().all(sign)
    };
    host.split('.').all(fits)
}

/// `127.0.0.1`, `0x7f.1`, `2130706433`: the last part decides.
fn is_number(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or_default();
    let hex = last.strip_prefix("0x").filter(|rest| rest.bytes().all(|it| it.is_ascii_hexdigit()));
    hex.is_some() || last.bytes().all(|sign| sign.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADMITTED: &[(&str, &str)] = &[
        ("domain:example.com", "https://example.com"),
        ("domain:example.com", "https://example.com/"),
        ("domain:example.com", "http://example.com/a/b?c=d#e"),
        ("domain:example.com", "https://example.com?x=http://evil.org"),
        ("domain:example.com", "https://example.com/@evil.org"),
        ("domain:example.com", "https://example.com#@evil.org"),
        ("domain:example.com", "https://example.com:8443/a"),
        ("domain:example.com", "HTTPS://EXAMPLE.Com/a"),
        ("domain:example.com", "https://example.com./a"),
        ("domain:Example.COM.", "https://example.com/a"),
        ("Domain: example.com ", "https://example.com/a"),
        ("domain:*.example.com", "https://docs.example.com/a"),
        ("domain:*.example.com", "https://a.b.example.com:80/"),
        ("domain:*", "https://anything.org/"),
        ("domain:localhost", "http://localhost:8080/"),
        ("domain:10.0.0.1", "http://10.0.0.1/"),
    ];

    /// None of these may be fetched by who was given `domain:` of the first word.
    const BYPASSES: &[(&str, &str)] = &[
        ("example.com", "https://evil.org/"),
        ("example.com", "https://docs.example.com/"),
        ("example.com", "http://example.com.evil.org/"),
        ("example.com", "http://example.com.evil.org./"),
        ("example.com", "https://notexample.com/"),
        ("example.com", "https://example.com-evil.org/"),
        ("example.com", "https://example.community/"),
        ("example.com", "https://example.com@evil.org/"),
        ("example.com", "https://example.com:443@evil.org/"),
        ("example.com", "https://example.com:pass@evil.org/"),
        ("example.com", "https://me@example.com/"),
        ("example.com", "https://evil.org@example.com/"),
        ("example.com", "https://example.com%40evil.org/"),
        ("example.com", "https://example.com%2eevil.org/"),
        ("example.com", "https://example.com%00.evil.org/"),
        ("example.com", "https://example.com\0.evil.org/"),
        ("example.com", "https://example.com\\@evil.org/"),
        ("example.com", "https://evil.org\\@example.com/"),
        ("example.com", "https://evil.org\\.example.com/"),
        ("example.com", "https:\\\\example.com/"),
        ("example.com", "https:/example.com/"),
        ("example.com", "https:example.com/"),
        ("example.com", "https:///example.com/"),
        ("example.com", "//example.com/"),
        ("example.com", "example.com/"),
        ("example.com", "https://evil.org/https://example.com/"),
        ("example.com", "https://evil.org/?https://example.com/"),
        ("example.com", "https://evil.org#https://example.com/"),
        ("example.com", "evil:https://example.com/"),
        ("example.com", "ftp://example.com/"),
        ("example.com", "file://example.com/etc/passwd"),
        ("example.com", "https://example.com../"),
        ("example.com", "https://.example.com/"),
        ("example.com", "https://example.com:/"),
        ("example.com", "https://example.com:80a/"),
        ("example.com", "https://example.com:80:80/"),
        ("example.com", "https://exam\tple.com/"),
        ("example.com", "https://example.com\n.evil.org/"),
        ("example.com", " https://example.com/"),
        ("example.com", "https://example。com/"),
        ("example.com", "https://ｅxample.com/"),
        ("example.com", "https://exаmple.com/"),
        ("example.com", "https://[::1]/"),
        ("example.com", "https://[example.com]/"),
        ("example.com", "https://"),
        ("example.com", ""),
        ("*.example.com", "https://example.com/"),
        ("*.example.com", "https://.example.com/"),
        ("*.example.com", "https://evilexample.com/"),
        ("*.example.com", "https://a.example.com.evil.org/"),
        ("*.example.com", "https://a.example.com@evil.org/"),
        ("*.example.com", "https://evil.org/a.example.com"),
        ("*.example.com", "https://evil.org?a.example.com"),
        // No star but the first part, and nothing that is no name.
        ("example.*", "https://example.com/"),
        ("*example.com", "https://evilexample.com/"),
        ("*.*", "https://a.example.com/"),
        ("", "https://example.com/"),
        ("", "https:///"),
        ("*.", "https://example.com/"),
        (".", "https://./"),
        ("example.com/a", "https://example.com/a"),
        ("*", "https://me@example.com/"),
        ("*", "file:///etc/passwd"),
    ];

    /// Whoever is denied `example.com` and `*.example.com` is denied these, or a person is asked.
    const DENIED: &[(&str, &str, Fit)] = &[
        ("example.com", "https://example.com/", Fit::Yes),
        ("example.com", "HTTPS://EXAMPLE.COM:8443/", Fit::Yes),
        ("example.com", "https://example.com./", Fit::Yes),
        ("example.com", "https://example.com../", Fit::Yes),
        ("example.com", "https://me:pass@example.com/", Fit::Yes),
        ("example.com", "https://other.org:80@example.com/", Fit::Yes),
        ("example.com", "https://other.org@x@example.com/", Fit::Yes),
        ("example.com", "https:example.com", Fit::Yes),
        ("example.com", "https:\\\\example.com\\a", Fit::Yes),
        ("example.com", "https:////example.com/", Fit::Yes),
        ("example.com", " https://exam\tple.com/", Fit::Yes),
        ("example.com", "https://ex%61mple.com/", Fit::Yes),
        ("example.com", "https://EX%41MPLE%2Ecom/", Fit::Yes),
        ("example.com", "https://example.com\\@other.org/", Fit::Yes),
        ("example.com", "https://ｅxample.com/", Fit::Maybe),
        ("example.com", "https://example。com/", Fit::Maybe),
        ("example.com", "https://93.184.216.34/", Fit::Maybe),
        ("example.com", "https://0x5db8d822/", Fit::Maybe),
        ("example.com", "https://[2606:2800::1]/", Fit::Maybe),
        ("example.com", "https://%ff/", Fit::Maybe),
        ("example.com", "example.com", Fit::Maybe),
        ("example.com", "https://other.org/", Fit::No),
        ("example.com", "https://other.org/?example.com", Fit::No),
        ("example.com", "https://example.com.other.org/", Fit::No),
        ("example.com", "https://docs.example.com/", Fit::No),
        ("*.example.com", "https://docs.example.com/", Fit::Yes),
        ("*.example.com", "https://a.b.Example.com./", Fit::Yes),
        ("*.example.com", "https://example.com/", Fit::Yes),
        ("*.example.com", "https://notexample.com/", Fit::No),
        ("*", "https://other.org/", Fit::Yes),
    ];

    #[test]
    fn what_is_admitted_and_what_only_looks_so() {
        for (pattern, address) in ADMITTED {
            let name = named(pattern).expect("a domain");
            assert!(admits(&name, address), "{pattern} should admit {address:?}");
        }
        for (domain, address) in BYPASSES {
            let name = named(&alloc::format!("domain:{domain}")).expect("a domain");
            assert!(!admits(&name, address), "{domain} must not admit {address:?}");
        }
        assert_eq!(named("https://example.com/*"), None);
        assert_eq!(named("dömain:x"), None);
    }

    #[test]
    fn what_is_denied_in_any_spelling() {
        for (domain, address, expected) in DENIED {
            assert_eq!(meets(domain, address), *expected, "{domain} {address:?}");
        }
    }
}
