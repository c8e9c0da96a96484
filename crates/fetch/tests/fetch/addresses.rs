//! Addresses that are refused, however they are written and whoever leads there.

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use locum_fetch::{Client, Follow, Refused, Request, fetch, why_private};

use crate::server::{Names, Server, ok, to};

/// Every one of them is this machine, its network, or nobody.
#[rustfmt::skip]
const PRIVATE: &[&str] = &[
    // This machine.
    "127.0.0.1", "127.0.0.2", "127.1.2.3", "127.255.255.255", "127.1", "127.0.1", "127.000.000.001",
    "2130706433", "0x7f000001", "0x7f.1", "0x7f.0.0.1", "0x7F.0x0.0x0.0x1", "017700000001",
    "0177.0.0.1", "0177.1", "0x7f.0.1", "127.0x1", "127.0.0.1.", "１２７.０.０.１", "127。0。0。1",
    "①②⑦.⓪.⓪.①", "%31%32%37.0.0.1",
    "0.0.0.0", "0", "0x0", "00", "0.1.2.3", "0.0.0.0.",
    "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::0:1]",
    // In the clothes of the new kind.
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:0:127.0.0.1]", "[::127.0.0.1]",
    "[::ffff:10.0.0.1]", "[::ffff:169.254.169.254]", "[::ffff:8.8.8.8]", "[::7f00:1]",
    "[64:ff9b::127.0.0.1]", "[64:ff9b::10.0.0.1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::8.8.8.8]",
    "[2002:7f00:1::]", "[2002:a00:1::1]", "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
    // Private networks.
    "10.0.0.1", "10.255.255.255", "10.1", "167772161", "0xa000001", "012.0.0.1",
    "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.1", "3232235777", "0xc0a80101",
    "[fc00::1]", "[fd00::1]", "[fd12:3456:789a::1]", "[fdff:ffff::]",
    // The local link, and who hands out credentials there.
    "169.254.169.254", "169.254.0.1", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376",
    "169.254.43518", "169.254.170.2", "168.63.129.16", "100.100.100.200", "192.0.0.192",
    "[fe80::1]", "[febf::1]", "[fec0::1]", "[fd00:ec2::254]",
    // Providers' networks, benchmarks, documentation, many at once, nobody.
    "100.64.0.1", "100.127.255.255", "198.18.0.1", "198.19.255.255",
    "192.0.2.1", "198.51.100.7", "203.0.113.9", "192.88.99.1", "192.0.0.8",
    "[2001:db8::1]", "[3fff::1]", "[2001:2::1]", "[2001:10::1]", "[100::1]", "[5f00::1]",
    "224.0.0.1", "239.255.255.250", "[ff02::1]", "[ff0e::1]", "240.0.0.1", "255.255.255.255",
    "4294967295", "[4000::1]", "[8000::1]",
];

/// Beside them, and everybody's.
const PUBLIC: &[&str] = &[
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.1",
    "100.63.255.255",
    "100.128.0.1",
    "126.255.255.255",
    "128.0.0.1",
    "168.63.129.17",
    "169.253.255.255",
    "172.15.255.255",
    "172.32.0.1",
    "192.0.1.1",
    "192.167.255.255",
    "198.17.255.255",
    "198.20.0.1",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450:4001:800::200e",
    "2001:4860:4860::8888",
    "64:ff9b::8.8.8.8",
];

#[tokio::test]
async fn private_addresses_are_refused_in_every_spelling() {
    assert!(PRIVATE.len() >= 60);
    let client = Client::new().unwrap();
    for host in PRIVATE {
        for (scheme, port) in [("http", ""), ("https", ""), ("http", ":8080"), ("HTTP", ":80")] {
            let url = format!("{scheme}://{host}{port}/secret");
            let refused = fetch(&Request::new(&url), &client).await.unwrap_err();
            // A spelling that no parser takes for an address is as good.
            let fits = matches!(refused, Refused::Private { .. } | Refused::NotAnAddress { .. });
            assert!(fits, "{url}: {refused}");
        }
    }
    let odd = PRIVATE.iter().filter(|host| {
        let url = format!("http://{host}/");
        reqwest::Url::parse(&url).is_err()
    });
    assert_eq!(odd.collect::<Vec<_>>(), [&""; 0], "every spelling was judged as an address");
    for address in PUBLIC {
        assert_eq!(why_private(address.parse().unwrap()), None, "{address}");
    }
}

#[tokio::test]
async fn names_are_judged_by_where_they_lead() {
    let hosts = PRIVATE.iter().filter_map(|host| host.trim_matches(['[', ']']).parse().ok());
    for address in hosts.collect::<Vec<IpAddr>>() {
        let client = Client::builder().lookup(Names::new(&[&[address]])).build().unwrap();
        let refused = fetch(&Request::new("http://page.test/"), &client).await.unwrap_err();
        let Refused::Private { address: found, .. } = &refused else { panic!("{refused}") };
        assert_eq!(*found, address);
    }
}

/// The first answer is harmless, the second is not: whoever asks twice is fooled.
#[tokio::test]
async fn a_name_that_changes_its_meaning_gains_nothing() {
    let server = Server::start(|_| ok("text/plain", "secret")).await;
    let (local, port) = (server.address.ip(), server.address.port());
    let public: IpAddr = "203.0.114.1".parse().unwrap();
    for meanings in [vec![vec![local]], vec![vec![local], vec![public]]] {
        let meanings: Vec<&[IpAddr]> = meanings.iter().map(Vec::as_slice).collect();
        let names = Names::new(&meanings);
        let client = Client::builder().lookup(names.clone()).build().unwrap();
        let request = Request::new(format!("http://page.test:{port}/"));
        let refused = fetch(&request, &client).await.unwrap_err();
        assert!(matches!(refused, Refused::Private { .. }), "{refused}");
        assert_eq!(names.asked.load(Ordering::SeqCst), 1, "it is looked up once");
    }
    assert_eq!(server.met.load(Ordering::SeqCst), 0, "nobody connected");
}

/// What is private among several addresses is left out; what is allowed is allowed by port.
#[tokio::test]
async fn only_what_is_allowed_is_connected_to() {
    let server = Server::start(|_| ok("text/plain", "hello")).await;
    let other = Server::start(|_| ok("text/plain", "secret")).await;
    let local = server.address.ip();
    let private: IpAddr = "10.0.0.1".parse().unwrap();
    let client =
        |names| Client::builder().allow_private([server.address]).lookup(names).build().unwrap();
    let at = |port: u16| Request::new(format!("http://page.test:{port}/"));
    let names = Names::new(&[&[private, local]]);
    let page = fetch(&at(server.address.port()), &client(names)).await.unwrap();
    assert_eq!(page.text, "hello");
    let names = Names::new(&[&[local]]);
    let refused = fetch(&at(other.address.port()), &client(names)).await.unwrap_err();
    assert!(matches!(refused, Refused::Private { .. }), "{refused}");
    let literal = Request::new(other.url("/"));
    let refused = fetch(&literal, &client(Names::new(&[]))).await.unwrap_err();
    assert!(matches!(refused, Refused::Private { .. }), "{refused}");
    assert_eq!(other.met.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn redirects_are_judged_like_the_first_address() {
    let secret = Server::start(|_| ok("text/plain", "secret")).await;
    let inner = secret.address;
    let server = Server::start(move |path| match path {
        "/literal" => to(&format!("http://{inner}/")),
        "/decimal" => to(&format!("http://2130706433:{}/", inner.port())),
        "/mapped" => to(&format!("http://[::ffff:127.0.0.1]:{}/", inner.port())),
        "/metadata" => to("http://169.254.169.254/latest/meta-data/"),
        "/name" => to(&format!("http://inner.test:{}/", inner.port())),
        "/relative" => to(&format!("//127.0.0.1:{}/", inner.port())),
        "/other" => to("https://example.org/"),
        "/file" => to("file:///etc/passwd"),
        "/script" => to("javascript:alert(1)"),
        "/login" => to("http://bob:hunter2@example.org/"),
        "/port" => to("http://example.org:25/"),
        "/twice" => to("/literal"),
        _ => ok("text/plain", "?"),
    })
    .await;
    let names = Names::new(&[&[inner.ip()]]);
    let client = Client::builder().allow_private([server.address]).lookup(names).build().unwrap();
    let cases = [
        ("/literal", "127.0.0.1, which is for this machine"),
        ("/decimal", "127.0.0.1, which is for this machine"),
        ("/mapped", "::ffff:127.0.0.1, which is for an address in another's clothes"),
        ("/metadata", "169.254.169.254, which is for the local link or a cloud's inner service"),
        ("/name", "if you want it, fetch http://inner.test:"),
        ("/other", "leads to another place, which was not asked for"),
        ("/relative", "127.0.0.1, which is for this machine"),
        ("/file", "begins with file:; only http and https are fetched"),
        ("/script", "begins with javascript:; only http and https are fetched"),
        ("/login", "the address of example.org holds a name or a password"),
        ("/port", "port 25 of http://example.org:25/ is not for pages"),
        ("/twice", "127.0.0.1, which is for this machine"),
    ];
    for (path, told) in cases {
        let refused = fetch(&Request::new(server.url(path)), &client).await.unwrap_err();
        let led = matches!(refused, Refused::Redirect { .. } | Refused::Elsewhere { .. });
        assert!(led, "{path}: {refused}");
        assert!(refused.to_string().contains(told), "{path}: {refused}");
        assert!(!refused.to_string().contains("hunter2"), "{path}: {refused}");
    }
    assert_eq!(secret.met.load(Ordering::SeqCst), 0, "nobody connected");
}

/// A rule may forbid one path of a machine and allow another: then where a page leads is told.
#[tokio::test]
async fn who_may_not_follow_is_told_where_it_leads() {
    let server = Server::start(|path| match path {
        "/moved" => to("/page"),
        _ => ok("text/plain", "page"),
    })
    .await;
    let port = server.address.port();
    let local = server.address.ip();
    let get = |follow: Follow, path: &str| {
        let names = Names::new(&[&[local], &[local]]);
        let client = Client::builder().allow_private([server.address]).lookup(names).build();
        let url = format!("http://page.test:{port}{path}");
        let request = Request { follow, ..Request::new(url) };
        async move {
            let page = fetch(&request, &client.unwrap()).await;
            page.map_or_else(|refused| refused.to_string(), |page| page.text)
        }
    };
    let cases = [
        (Follow::Place, "/moved", "page"),
        (Follow::Host, "/moved", "page"),
        (Follow::Nowhere, "/page", "page"),
        (Follow::Nowhere, "/moved", "if you want it, fetch http://page.test:"),
    ];
    for (follow, path, told) in cases {
        let found = get(follow, path).await;
        assert!(found.contains(told), "{follow:?} {path}: {found}");
    }
}

#[tokio::test]
async fn addresses_that_are_none_are_refused() {
    let client = Client::new().unwrap();
    let cases = [
        ("", "is no address of a page"),
        ("example.org", "is no address of a page"),
        ("http://", "is no address of a page"),
        ("http:///", "is no address of a page"),
        ("http://a b/", "is no address of a page"),
        ("http://[::1%25eth0]/", "is no address of a page"),
        ("http://999.999.999.999/", "is no address of a page"),
        ("file:///etc/passwd", "begins with file:"),
        ("ftp://example.org/", "begins with ftp:"),
        ("gopher://example.org:70/_", "begins with gopher:"),
        ("data:text/html,x", "begins with data:"),
        ("unix:///var/run/docker.sock", "begins with unix:"),
        ("view-source:http://x/", "begins with view-source:"),
        ("http://bob@example.org/", "holds a name or a password"),
        ("https://bob:hunter2@example.org/", "holds a name or a password"),
        ("http://:hunter2@example.org/", "holds a name or a password"),
        ("http://example.org:22/", "port 22 of http://example.org:22/ is not for pages"),
        ("http://example.org:0/", "port 0 of"),
    ];
    for (url, told) in cases {
        let refused = fetch(&Request::new(url), &client).await.unwrap_err().to_string();
        assert!(refused.contains(told), "{url}: {refused}");
        assert!(!refused.contains("hunter2"), "{url}: {refused}");
    }
    let long = format!("http://example.org/{}", "x".repeat(9_000));
    let refused = fetch(&Request::new(long), &client).await.unwrap_err().to_string();
    assert!(refused.contains("it has 9019 bytes") && refused.len() < 500, "{refused}");
}
