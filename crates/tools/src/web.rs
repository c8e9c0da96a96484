//! `web_fetch`: a page of the web as text.

use std::sync::{Arc, OnceLock};

use locum_fetch::{Client, Follow, Refused, Request, fetch};
use locum_kernel::{Class, Errand, Output, Span, ToolSpec};
use locum_runtime::live::Live;
use locum_runtime::provider::Task;
use locum_runtime::tool::Toolbox;

use crate::{number, text};

/// So much of a page is shown at once, in characters.
const SHOWN: usize = 24_000;

/// Whom to trust is looked up when the first page is fetched: most sessions fetch none.
#[derive(Debug, Default)]
pub struct Web(Arc<OnceLock<Client>>);

fn client(kept: &OnceLock<Client>) -> Result<&Client, Refused> {
    if let Some(client) = kept.get() {
        return Ok(client);
    }
    let made = Client::new()?;
    Ok(kept.get_or_init(|| made))
}

/// Where rules would judge otherwise is told, so that it is asked for and judged.
fn follow(span: Span) -> Follow {
    match span {
        Span::Place => Follow::Place,
        Span::Host => Follow::Host,
        Span::Address => Follow::Nowhere,
    }
}

impl Toolbox for Web {
    fn specs(&self) -> Vec<ToolSpec> {
        vec![ToolSpec {
            idempotent: true,
            ..ToolSpec::new("web_fetch", Class::Network, Some("url"))
        }]
    }

    fn run(&self, errand: Errand, _live: Live) -> Task<Output> {
        let kept = Arc::clone(&self.0);
        Box::pin(async move {
            let Some(url) = text(&errand.arguments, "url") else {
                return Output::error("web_fetch needs a `url`");
            };
            let count = |name| {
                number(&errand.arguments, name).and_then(|number| usize::try_from(number).ok())
            };
            let offset = count("offset").unwrap_or(0);
            let limit = count("limit").unwrap_or(SHOWN).min(SHOWN);
            let client = match client(&kept) {
                Ok(client) => client,
                Err(refused) => return Output::error(refused.to_string()),
            };
            let request = Request { follow: follow(errand.span), ..Request::new(url) };
            match fetch(&request, client).await {
                Ok(page) => {
                    let is_error = page.status >= 400;
                    Output { is_error, ..Output::ok(page.show(offset, limit)) }
                }
                Err(refused) => Output::error(refused.to_string()),
            }
        })
    }
}
