//! What a memory must not keep: keys, tokens and passwords. Notes go into prompts, files and
//! backups, where a secret is in the wrong place. Known shapes are found by their beginnings;
//! unknown ones only where the line itself says that they are secret, so that hashes, ids and
//! long names can be kept.

use std::fmt;

/// What the text seems to hold. Shows no more than the beginning of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    kind: &'static str,
    begins: String,
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it seems to hold {} ({}…)", self.kind, self.begins)
    }
}

/// How a token begins, how many signs it then has at least, and what it is.
const SHAPES: &[(&str, usize, &str)] = &[
    ("sk-", 20, "an API key"),
    ("sk_live_", 16, "a payment key"),
    ("sk_test_", 16, "a payment key"),
    ("rk_live_", 16, "a payment key"),
    ("pk_live_", 16, "a payment key"),
    ("whsec_", 16, "a webhook secret"),
    ("ghp_", 20, "a GitHub token"),
    ("gho_", 20, "a GitHub token"),
    ("ghu_", 20, "a GitHub token"),
    ("ghs_", 20, "a GitHub token"),
    ("ghr_", 20, "a GitHub token"),
    ("github_pat_", 20, "a GitHub token"),
    ("glpat-", 16, "a GitLab token"),
    ("xoxb-", 16, "a Slack token"),
    ("xoxa-", 16, "a Slack token"),
    ("xoxp-", 16, "a Slack token"),
    ("xoxr-", 16, "a Slack token"),
    ("xoxs-", 16, "a Slack token"),
    ("xapp-", 16, "a Slack token"),
    ("AKIA", 16, "an AWS key"),
    ("ASIA", 16, "an AWS key"),
    ("AIza", 30, "a Google key"),
    ("ya29.", 20, "a Google token"),
    ("GOCSPX-", 16, "a Google secret"),
    ("npm_", 30, "an npm token"),
    ("pypi-", 30, "a PyPI token"),
    ("hf_", 30, "a Hugging Face token"),
    ("gsk_", 30, "an API key"),
    ("xai-", 30, "an API key"),
    ("dop_v1_", 30, "a DigitalOcean token"),
    ("shpat_", 20, "a Shopify token"),
    ("SG.", 30, "a SendGrid key"),
    ("AGE-SECRET-KEY-", 20, "an age key"),
];

/// Words after which a value is a secret, whatever it looks like.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "private_key",
    "credential",
    "bearer",
    "pwd",
    "auth_key",
    "passwort",
];

/// A word shorter than this is a word and not a secret.
const VALUE_SIGNS_MIN: usize = 12;

pub(crate) fn find(text: &str) -> Option<Secret> {
    text.lines().find_map(in_line)
}

fn in_line(line: &str) -> Option<Secret> {
    if line.contains("-----BEGIN ") && line.contains("PRIVATE KEY") {
        return Some(Secret { kind: "a private key", begins: "-----BEGIN".into() });
    }
    let tokens = || line.split(is_between).filter(|token| !token.is_empty());
    let known = tokens().find_map(|token| Some(Secret { kind: known(token)?, begins: few(token) }));
    known.or_else(|| in_address(line)).or_else(|| named(line))
}

/// What cannot be part of a token.
fn is_between(sign: char) -> bool {
    sign.is_whitespace() || "\"'`<>()[]{}=,;:|".contains(sign)
}

fn known(token: &str) -> Option<&'static str> {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+/".contains(&byte);
    let shape = SHAPES.iter().find(|(begin, least, _)| {
        token.strip_prefix(begin).is_some_and(|rest| {
            let length = rest.bytes().take_while(|byte| is_sign(*byte)).count();
            // Names such as `sk-learn-contrib-something` have no digit.
            length >= *least && rest.bytes().any(|byte| byte.is_ascii_digit())
        })
    });
    if let Some((_, _, kind)) = shape {
        return Some(kind);
    }
    let parts: Vec<&str> = token.split('.').collect();
    let is_web_token = parts.len() == 3
        && parts[0].starts_with("eyJ")
        && parts[1].starts_with("eyJ")
        && parts.iter().all(|part| part.len() >= 8);
    is_web_token.then_some("a web token")
}

/// `https://name:password@host`.
fn in_address(line: &str) -> Option<Secret> {
    line.match_indices("://").find_map(|(at, _)| {
        let rest = &line[at + 3..];
        let end = rest.find(|sign: char| sign.is_whitespace() || "/?#\"'<>".contains(sign));
        let (user, _) = rest[..end.unwrap_or(rest.len())].rsplit_once('@')?;
        let (_, word) = user.split_once(':')?;
        // `$PASSWORD` and `<password>` name one and are none.
        let is_one = !word.is_empty() && !word.starts_with(['$', '{', '*']);
        is_one.then(|| Secret { kind: "an address with a password", begins: few(user) })
    })
}

/// `password: correct-horse-9`, `API_TOKEN=…`, `Authorization: Bearer …`.
fn named(line: &str) -> Option<Secret> {
    let low = line.to_ascii_lowercase();
    NAMES.iter().find_map(|name| {
        low.match_indices(name).find_map(|(at, _)| {
            let rest = &line[at + name.len()..];
            // The rest of the name, as in `token_prod`, and what stands between it and the value.
            let rest = rest.trim_start_matches(|sign: char| {
                sign.is_ascii_alphanumeric() || sign == '_' || sign == '-'
            });
            let value = rest.trim_start_matches([' ', '"', '\'', '`', ':', '=', '>']);
            let between = &rest[..rest.len() - value.len()];
            let is_given = between.contains([':', '=']) || *name == "bearer";
            let value = value.split(|sign: char| sign.is_whitespace() || "\"'`,;".contains(sign));
            let value = value.map(str::trim).next().unwrap_or_default();
            (is_given && is_random(value))
                .then(|| Secret { kind: "a password or token", begins: few(value) })
        })
    })
}

/// Letters and digits mixed, long, in one piece: nothing that a person would write as a word.
fn is_random(value: &str) -> bool {
    let has = |test: fn(&u8) -> bool| value.as_bytes().iter().any(test);
    value.chars().count() >= VALUE_SIGNS_MIN
        && !value.starts_with(['$', '<', '{', '/', '~', '.'])
        && !value.contains("://")
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
}

/// Enough to know which one is meant, and not enough to use it.
fn few(text: &str) -> String {
    text.chars().take(4).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Built from pieces, so that no scanner takes this file for a leak.
    #[test]
    fn secrets_are_noticed() {
        let tail = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z";
        let cases = [
            format!("the key is sk-{tail}"),
            format!("sk-ant-api03-{tail}"),
            format!("use ghp_{tail} to push"),
            format!("token=\"github_pat_{tail}\""),
            format!("AKIA{}", "IOSFODNN7EXAMPLE"),
            format!("(xoxb-{tail})"),
            format!("key:AIza{tail}123"),
            format!("eyJhbGciOi.eyJzdWIiOi.{tail}"),
            "-----BEGIN OPENSSH PRIVATE KEY-----\nabc".to_owned(),
            "fine\n-----BEGIN PRIVATE KEY-----".to_owned(),
            "postgres://bob:hunter2@db.example.org/x".to_owned(),
            "the password: correcthorse99battery".to_owned(),
            "API_TOKEN=9f8e7d6c5b4a3f2e1d".to_owned(),
            "Authorization: Bearer abcdef1234567890".to_owned(),
            "\"client_secret\": \"a1b2c3d4e5f6g7h8\"".to_owned(),
            format!("glpat-{tail}"),
        ];
        for text in cases {
            assert!(find(&text).is_some(), "{text}");
        }
        let told = find(&format!("ghp_{tail}")).unwrap().to_string();
        assert_eq!(told, "it seems to hold a GitHub token (ghp_…)");
    }

    #[test]
    fn what_only_looks_odd_is_kept() {
        let cases = [
            "the commit is 343074d4c1f0a9b8e7d6c5b4a39281706f5e4d3c",
            "session 6f1c1f62-6a5e-4a3e-9a63-2f0f6b0d8c11",
            "the token limit is 200000 and the password is in the keychain",
            "password: see the vault",
            "token: $GITHUB_TOKEN",
            "secret: <the one in 1Password2024>",
            "scikit: sk-learn-contrib-imbalanced-learn",
            "https://example.org:8080/a@b",
            "ssh://git@example.org/repo",
            "https://user:$PASSWORD@example.org",
            "AKIA is how such keys begin",
            "-----BEGIN CERTIFICATE-----",
            "tokens: they are counted by tiktoken-rs-0.12.1",
            "pypi-names are lower case",
        ];
        for text in cases {
            assert_eq!(find(text), None, "{text}");
        }
    }
}
