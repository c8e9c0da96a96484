//! Lists, resources and prompts: what a server offers beside calls, read page by page, and
//! requests that go back and forth because the server needs input first.

#![expect(deprecated, reason = "servers in the wild still use what the newest protocol drops")]

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, ClientRequest, GetPromptRequest, GetPromptRequestParams, InputRequest,
    InputRequiredResult, InputResponses, ListPromptsRequest, ListResourceTemplatesRequest,
    ListResourcesRequest, ListToolsRequest, PaginatedRequestParams, ReadResourceRequest,
    ReadResourceRequestParams, Role, ServerResult, SubscribeRequest, SubscribeRequestParams,
    UnsubscribeRequest, UnsubscribeRequestParams,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::Progress;
use crate::connection::Connection;
use crate::error::Error;
use crate::limits;
use crate::mend;
use crate::servers::{Servers, note};
use crate::spec::ServerSpec;
use crate::tool::{Called, Listing};

/// Something to read, or with `uri` a template of many such things.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    pub uri: String,
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub media_type: Option<String>,
}

/// Words a server suggests to say to a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub arguments: Vec<Argument>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Argument {
    pub name: String,
    pub description: Option<String>,
    pub required: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptText {
    pub description: Option<String>,
    pub messages: Vec<Said>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Said {
    pub by: Speaker,
    pub content: Called,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Speaker {
    User,
    Assistant,
}

/// A request that the server may want to have repeated with more input.
pub(crate) trait Repeatable {
    fn supply(&mut self, responses: Option<InputResponses>, state: Option<String>);
}

macro_rules! repeatable {
    ($($params:ty),*) => {
        $(impl Repeatable for $params {
            fn supply(&mut self, responses: Option<InputResponses>, state: Option<String>) {
                self.input_responses = responses;
                self.request_state = state;
            }
        })*
    };
}

repeatable!(CallToolRequestParams, ReadResourceRequestParams, GetPromptRequestParams);

impl Connection {
    /// Asks, supplies what the server needs for an answer, asks again.
    pub(crate) async fn converse<P: Repeatable>(
        &self,
        what: &str,
        limit: Duration,
        mut params: P,
        request: impl Fn(&P) -> ClientRequest,
        report: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<ServerResult, Error> {
        for _ in 0..limits::ROUNDS {
            let result = self.request(what, limit, request(&params), report).await?;
            let ServerResult::InputRequiredResult(needed) = result else { return Ok(result) };
            let state = needed.request_state.clone();
            let responses = self.supply(what, needed).await?;
            params.supply(responses, state);
        }
        let (server, rounds) = (self.client().server.clone(), limits::ROUNDS);
        Err(Error::Rounds { server, what: what.to_owned(), rounds })
    }

    async fn supply(
        &self,
        what: &str,
        needed: InputRequiredResult,
    ) -> Result<Option<InputResponses>, Error> {
        let client = self.client();
        let mut responses = InputResponses::new();
        for (key, request) in needed.input_requests.unwrap_or_default() {
            let response = match request {
                InputRequest::CreateMessage(request) => match client.sample(request.params).await {
                    Ok(result) => serde_json::to_value(result),
                    Err(error) => {
                        let (server, what) = (client.server.clone(), what.to_owned());
                        let (code, message) = (error.code.0, error.message.to_string());
                        return Err(Error::Refused { server, what, code, message });
                    }
                },
                InputRequest::Elicitation(request) => {
                    serde_json::to_value(client.elicit(request.params).await)
                }
                InputRequest::ListRoots(_) => serde_json::to_value(client.roots()),
                _ => {
                    let (server, what) = (client.server.clone(), what.to_owned());
                    return Err(Error::Confused { server, what });
                }
            };
            responses.insert(key, response.unwrap_or(Value::Null));
        }
        Ok((!responses.is_empty()).then_some(responses))
    }

    pub(crate) async fn tools(&self, spec: &ServerSpec, limit: Duration) -> Result<Listing, Error> {
        let info = self.peer_info();
        let capabilities = info.as_ref().map(|info| &info.capabilities);
        let resources = capabilities.is_some_and(|it| it.resources.is_some());
        let prompts = capabilities.is_some_and(|it| it.prompts.is_some());
        if capabilities.is_none_or(|it| it.tools.is_none()) {
            return Ok(Listing { resources, prompts, ..Listing::default() });
        }
        let ask = |page: PaginatedRequestParams| {
            let params = Some(page);
            ClientRequest::ListToolsRequest(ListToolsRequest { params, ..Default::default() })
        };
        let malformed: Mutex<Vec<String>> = Mutex::default();
        let take = |result| {
            let ServerResult::ListToolsResult(page) = result else { return None };
            let mut malformed = malformed.lock().unwrap_or_else(PoisonError::into_inner);
            malformed.extend(mend::left_out(page.meta.as_ref()));
            malformed.truncate(limits::PARTS);
            Some((page.tools, page.next_cursor))
        };
        let tools = self.pages("the list of its tools", limit, ask, take).await?;
        let mut listing = Listing::new(&spec.name, tools, |tool| spec.allows(tool));
        listing.left_out.extend(malformed.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(Listing { resources, prompts, ..listing })
    }

    async fn pages<T>(
        &self,
        what: &str,
        limit: Duration,
        ask: impl Fn(PaginatedRequestParams) -> ClientRequest,
        take: impl Fn(ServerResult) -> Option<(Vec<T>, Option<String>)>,
    ) -> Result<Vec<T>, Error> {
        let mut all = Vec::new();
        let mut page = PaginatedRequestParams::default();
        for _ in 0..limits::PAGES {
            let result = self.request(what, limit, ask(page.clone()), &mut |_| {}).await?;
            let confused =
                || Error::Confused { server: self.client().server.clone(), what: what.to_owned() };
            let (items, next) = take(result).ok_or_else(confused)?;
            all.extend(items);
            if all.len() > limits::LISTED {
                let (logs, count) = (&self.client().logs, all.len());
                logs.note(&format!("{what} is cut: {count} of them, at most {}", limits::LISTED));
                all.truncate(limits::LISTED);
                break;
            }
            // A page that follows itself would follow itself for ever.
            if next.is_none() || next == page.cursor {
                break;
            }
            page.cursor = next;
        }
        Ok(all)
    }
}

impl Servers {
    pub async fn resources(&self, server: &str) -> Result<Vec<Resource>, Error> {
        let ask = |page: PaginatedRequestParams| {
            let params = Some(page);
            ClientRequest::ListResourcesRequest(ListResourcesRequest {
                params,
                ..Default::default()
            })
        };
        let take = |result| {
            let ServerResult::ListResourcesResult(page) = result else { return None };
            Some((page.resources, page.next_cursor))
        };
        let resources = self.list(server, "the list of its resources", ask, take).await?;
        let resource = |resource: rmcp::model::Resource| Resource {
            uri: resource.uri,
            name: resource.name,
            title: resource.title,
            description: resource.description,
            media_type: resource.mime_type,
        };
        Ok(resources.into_iter().map(resource).collect())
    }

    pub async fn resource_templates(&self, server: &str) -> Result<Vec<Resource>, Error> {
        let ask = |page: PaginatedRequestParams| {
            let params = Some(page);
            ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest {
                params,
                ..Default::default()
            })
        };
        let take = |result| {
            let ServerResult::ListResourceTemplatesResult(page) = result else { return None };
            Some((page.resource_templates, page.next_cursor))
        };
        let templates = self.list(server, "the list of its templates", ask, take).await?;
        let template = |template: rmcp::model::ResourceTemplate| Resource {
            uri: template.uri_template,
            name: template.name,
            title: template.title,
            description: template.description,
            media_type: template.mime_type,
        };
        Ok(templates.into_iter().map(template).collect())
    }

    pub async fn read_resource(&self, server: &str, uri: &str) -> Result<Called, Error> {
        let params = ReadResourceRequestParams::new(uri);
        let request = |params: &ReadResourceRequestParams| {
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params.clone()))
        };
        let what = format!("resource {uri}");
        let result = self.converse(server, &what, params, request).await?;
        let ServerResult::ReadResourceResult(result) = result else {
            return Err(Error::Confused { server: server.to_owned(), what });
        };
        let mut called = Called::default();
        result.contents.into_iter().for_each(|part| called.add_contents(part));
        Ok(called)
    }

    /// Changes of it come as `ResourceUpdated`, until the server ends.
    pub async fn subscribe(&self, server: &str, uri: &str) -> Result<(), Error> {
        let what = format!("subscription to {uri}");
        let found = self.find(server)?;
        let connection = self.connect(found, &what).await?;
        if !found.watch(uri) {
            return Ok(());
        }
        if connection.is_modern() {
            connection.listen(Some(uri.to_owned()));
            return Ok(());
        }
        let request = SubscribeRequest::new(SubscribeRequestParams::new(uri));
        let request = ClientRequest::SubscribeRequest(request);
        let asked = connection.request(&what, found.spec.timeout, request, &mut |_| {}).await;
        asked.map(drop).inspect_err(|_| found.unwatch(uri))
    }

    pub async fn unsubscribe(&self, server: &str, uri: &str) -> Result<(), Error> {
        let what = format!("end of the subscription to {uri}");
        let found = self.find(server)?;
        found.unwatch(uri);
        let connection = self.connect(found, &what).await?;
        if connection.is_modern() {
            return Ok(());
        }
        let request = UnsubscribeRequest::new(UnsubscribeRequestParams::new(uri));
        let request = ClientRequest::UnsubscribeRequest(request);
        connection.request(&what, found.spec.timeout, request, &mut |_| {}).await.map(drop)
    }

    pub async fn prompts(&self, server: &str) -> Result<Vec<Prompt>, Error> {
        let ask = |page: PaginatedRequestParams| {
            let params = Some(page);
            ClientRequest::ListPromptsRequest(ListPromptsRequest { params, ..Default::default() })
        };
        let take = |result| {
            let ServerResult::ListPromptsResult(page) = result else { return None };
            Some((page.prompts, page.next_cursor))
        };
        let prompts = self.list(server, "the list of its prompts", ask, take).await?;
        let argument = |argument: rmcp::model::PromptArgument| Argument {
            name: argument.name,
            description: argument.description,
            required: argument.required.unwrap_or(false),
        };
        let prompt = |prompt: rmcp::model::Prompt| Prompt {
            name: prompt.name,
            title: prompt.title,
            description: prompt.description,
            arguments: prompt.arguments.into_iter().flatten().map(argument).collect(),
        };
        Ok(prompts.into_iter().map(prompt).collect())
    }

    /// `arguments` is an object of texts, or null.
    pub async fn prompt(
        &self,
        server: &str,
        name: &str,
        arguments: Value,
    ) -> Result<PromptText, Error> {
        let mut params = GetPromptRequestParams::new(name);
        params.arguments = arguments.as_object().cloned();
        let request = |params: &GetPromptRequestParams| {
            ClientRequest::GetPromptRequest(GetPromptRequest::new(params.clone()))
        };
        let what = format!("prompt `{name}`");
        let ServerResult::GetPromptResult(result) =
            self.converse(server, &what, params, request).await?
        else {
            return Err(Error::Confused { server: server.to_owned(), what });
        };
        let said = |message: rmcp::model::PromptMessage| {
            let mut content = Called::default();
            content.add(message.content);
            let by = match message.role {
                Role::Assistant => Speaker::Assistant,
                Role::User => Speaker::User,
            };
            Said { by, content }
        };
        let messages = result.messages.into_iter().take(limits::LISTED).map(said).collect();
        Ok(PromptText { description: result.description, messages })
    }

    async fn list<T>(
        &self,
        server: &str,
        what: &str,
        ask: impl Fn(PaginatedRequestParams) -> ClientRequest,
        take: impl Fn(ServerResult) -> Option<(Vec<T>, Option<String>)>,
    ) -> Result<Vec<T>, Error> {
        let server = self.find(server)?;
        let connection = self.connect(server, what).await?;
        let listed = connection.pages(what, server.spec.timeout, ask, take).await;
        listed.inspect_err(|error| note(server, error))
    }

    async fn converse<P: Repeatable>(
        &self,
        server: &str,
        what: &str,
        params: P,
        request: impl Fn(&P) -> ClientRequest,
    ) -> Result<ServerResult, Error> {
        let server = self.find(server)?;
        let connection = self.connect(server, what).await?;
        let limit = server.spec.timeout;
        let result = connection.converse(what, limit, params, request, &mut |_| {}).await;
        result.inspect_err(|error| note(server, error))
    }
}
