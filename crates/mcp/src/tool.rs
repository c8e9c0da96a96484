//! What a server offers, as the rest of the program sees it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use rmcp::model::{ContentBlock, ResourceContents, Tool};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits;
use crate::name;

/// One tool. Hints are the server's own words about itself: believe them only of a server that
/// is trusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolInfo {
    pub server: String,
    /// As the server calls it.
    pub name: String,
    /// As models and rules call it.
    pub full_name: String,
    pub title: Option<String>,
    pub description: String,
    pub input_schema: Value,
    pub output_schema: Option<Value>,
    pub read_only_hint: Option<bool>,
    pub destructive_hint: Option<bool>,
    pub idempotent_hint: Option<bool>,
    pub open_world_hint: Option<bool>,
    /// Sha-256 over all of the above that the server said. What was approved under another
    /// digest was not this tool.
    pub digest: String,
}

impl ToolInfo {
    fn new(server: &str, tool: Tool) -> ToolInfo {
        let hints = tool.annotations.clone().unwrap_or_default();
        let schema = Value::Object((*tool.input_schema).clone());
        ToolInfo {
            server: server.to_owned(),
            full_name: name::full(server, &tool.name),
            digest: digest(&tool),
            name: tool.name.into_owned(),
            title: tool.title.or(hints.title),
            description: tool.description.map(Cow::into_owned).unwrap_or_default(),
            input_schema: schema,
            output_schema: tool.output_schema.map(|schema| Value::Object((*schema).clone())),
            read_only_hint: hints.read_only_hint,
            destructive_hint: hints.destructive_hint,
            idempotent_hint: hints.idempotent_hint,
            open_world_hint: hints.open_world_hint,
        }
    }
}

/// Hints are in it too: "only reads" is a reason to approve.
fn digest(tool: &Tool) -> String {
    let schema = |schema: &rmcp::model::JsonObject| {
        let mut text = String::new();
        name::canonical(&Value::Object(schema.clone()), &mut text);
        text
    };
    let parts = [
        tool.name.to_string(),
        tool.description.as_deref().unwrap_or_default().to_owned(),
        schema(&tool.input_schema),
        tool.output_schema.as_deref().map(schema).unwrap_or_default(),
        tool.title.clone().unwrap_or_default(),
        serde_json::to_string(&tool.annotations).unwrap_or_default(),
    ];
    name::hex(&name::digest(parts.iter().map(String::as_bytes)))
}

/// What a server had when it was last asked, to be remembered beyond the process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Known {
    pub tools: Vec<ToolInfo>,
    /// Whether it has resources to read, and prompts to get.
    pub resources: bool,
    pub prompts: bool,
    /// Tools that nobody can use, with why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// What one server has, and what of it was left out and why.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Listing {
    pub(crate) tools: Vec<ToolInfo>,
    pub(crate) resources: bool,
    pub(crate) prompts: bool,
    pub(crate) left_out: Vec<String>,
}

impl Listing {
    pub(crate) fn new(server: &str, tools: Vec<Tool>, allows: impl Fn(&str) -> bool) -> Listing {
        let mut listing = Listing::default();
        let mut seen = BTreeSet::new();
        for tool in tools {
            if !allows(&tool.name) {
                continue;
            }
            let bytes = serde_json::to_vec(&tool).map_or(usize::MAX, |bytes| bytes.len());
            let name = crate::logs::clip(&tool.name, 80);
            let why = if bytes > limits::TOOL_BYTES {
                Some(format!("tool `{name}`: {bytes} bytes, at most {}", limits::TOOL_BYTES))
            } else if tool.name.is_empty() {
                Some("a tool without a name".to_owned())
            } else if !seen.insert(tool.name.to_string()) {
                Some(format!("tool `{name}` is listed twice"))
            } else {
                None
            };
            match why {
                Some(why) if listing.left_out.len() < limits::PARTS => listing.left_out.push(why),
                Some(_) => {}
                None => listing.tools.push(ToolInfo::new(server, tool)),
            }
        }
        // Servers list in any order; prompts are cheaper when it stays the same.
        listing.tools.sort_by(|a, b| a.name.cmp(&b.name));
        listing
    }

    /// Whether both offer the same: same words, same kinds.
    pub(crate) fn is_like(&self, other: &Listing) -> bool {
        let digests = |it: &Listing| -> Vec<String> {
            it.tools.iter().map(|tool| tool.digest.clone()).collect()
        };
        (self.resources, self.prompts) == (other.resources, other.prompts)
            && digests(self) == digests(other)
    }

    pub(crate) fn known(&self) -> Known {
        let (tools, left_out) = (self.tools.clone(), self.left_out.clone());
        Known { tools, resources: self.resources, prompts: self.prompts, left_out }
    }

    pub(crate) fn remembered(known: Known) -> Listing {
        let Known { tools, resources, prompts, left_out } = known;
        Listing { tools, resources, prompts, left_out }
    }
}

/// What a tool returned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Called {
    pub text: String,
    pub structured: Option<Value>,
    pub images: Vec<Media>,
    pub resource_links: Vec<Link>,
    /// The tool ran and says that it failed.
    pub is_error: bool,
    /// What was too much and is missing above.
    pub cut: Vec<String>,
}

/// A picture or a sound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Media {
    pub media_type: String,
    pub bytes: Vec<u8>,
}

/// Something that can be read with `read_resource`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub uri: String,
    pub name: String,
    pub description: Option<String>,
    pub media_type: Option<String>,
}

impl Called {
    pub(crate) fn structure(&mut self, value: Option<Value>) {
        let bytes = value.as_ref().map_or(0, |value| value.to_string().len());
        if bytes > limits::TEXT_BYTES {
            return self.lost(format!("structured content of {bytes} bytes"));
        }
        self.structured = value;
    }

    pub(crate) fn add(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.add_text(&text.text),
            ContentBlock::Image(image) => self.add_media(image.mime_type, &image.data),
            ContentBlock::Audio(audio) => self.add_media(audio.mime_type, &audio.data),
            ContentBlock::Resource(embedded) => self.add_contents(embedded.resource),
            ContentBlock::ResourceLink(resource) => {
                if self.resource_links.len() >= limits::PARTS {
                    return self.lost(format!("a link to {}", resource.uri));
                }
                self.resource_links.push(Link {
                    uri: resource.uri,
                    name: resource.name,
                    description: resource.description,
                    media_type: resource.mime_type,
                });
            }
            // The SDK may learn kinds of content that we cannot show.
            _ => self.lost("content of an unknown kind".to_owned()),
        }
    }

    pub(crate) fn add_contents(&mut self, contents: ResourceContents) {
        match contents {
            ResourceContents::TextResourceContents { text, .. } => self.add_text(&text),
            ResourceContents::BlobResourceContents { mime_type, blob, .. } => {
                let kind = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
                self.add_media(kind, &blob);
            }
            _ => self.lost("contents of an unknown kind".to_owned()),
        }
    }

    fn add_text(&mut self, text: &str) {
        if !self.text.is_empty() && self.text.len() < limits::TEXT_BYTES {
            self.text.push('\n');
        }
        let room = limits::TEXT_BYTES.saturating_sub(self.text.len());
        let mut end = room.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.text.push_str(&text[..end]);
        if end < text.len() {
            self.lost(format!("{} of {} bytes of text", text.len() - end, text.len()));
        }
    }

    fn add_media(&mut self, media_type: String, data: &str) {
        use base64::Engine as _;
        let used: usize = self.images.iter().map(|media| media.bytes.len()).sum();
        // Four signs stand for three bytes.
        let coming = data.len() / 4 * 3;
        if used + coming > limits::IMAGE_BYTES || self.images.len() >= limits::PARTS {
            return self.lost(format!("{media_type} of about {coming} bytes"));
        }
        match base64::engine::general_purpose::STANDARD.decode(data) {
            Ok(bytes) => self.images.push(Media { media_type, bytes }),
            Err(_) => self.lost(format!("{media_type} that is not base64")),
        }
    }

    fn lost(&mut self, what: String) {
        match self.cut.len() {
            0..limits::PARTS => self.cut.push(what),
            limits::PARTS => self.cut.push("and more".to_owned()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ContentBlock, Tool};
    use serde_json::{Value, json};

    use super::{Called, Listing};
    use crate::limits;

    fn tool(value: Value) -> Tool {
        serde_json::from_value(value).expect("a tool")
    }

    fn digest_of(value: Value) -> String {
        Listing::new("s", vec![tool(value)], |_| true).tools[0].digest.clone()
    }

    #[test]
    fn a_digest_notices_every_change() {
        let base = json!({"name": "t", "description": "d", "inputSchema":
            {"type": "object", "properties": {"a": {"type": "string"}}}});
        let changes = [
            ("/name", json!("u")),
            ("/description", json!("d ")),
            ("/inputSchema/properties/a/type", json!("number")),
            ("/inputSchema/properties/b", json!({})),
            ("/outputSchema", json!({"type": "object"})),
            ("/annotations", json!({"readOnlyHint": true})),
            ("/title", json!("T")),
        ];
        let was = digest_of(base.clone());
        assert_eq!(was, digest_of(base.clone()));
        assert_eq!(was.len(), 64);
        for (pointer, value) in changes {
            let mut other = base.clone();
            let (parent, key) = pointer.rsplit_once('/').expect("a path");
            other.pointer_mut(parent).expect("is there")[key] = value;
            assert_ne!(was, digest_of(other), "{pointer}");
        }
    }

    #[test]
    fn listings() {
        let schema = json!({"type": "object", "$defs": {"x": {"const": 1}}, "x-y": [1.5, null]});
        let named = |name: &str| tool(json!({"name": name, "inputSchema": schema}));
        let fat = "x".repeat(limits::TOOL_BYTES);
        let fat = tool(json!({"name": "fat", "description": fat, "inputSchema": schema}));
        let tools = vec![named("b"), named("a"), named("b"), named("no"), named(""), fat];
        let listing = Listing::new("s", tools, |name| name != "no");
        let full: Vec<&str> = listing.tools.iter().map(|tool| tool.full_name.as_str()).collect();
        assert_eq!(full, ["s__a", "s__b"]);
        assert_eq!(listing.left_out.len(), 3, "{:?}", listing.left_out);
        assert_eq!(listing.tools[0].input_schema, schema);
    }

    #[test]
    fn results_are_bounded_and_say_so() {
        let mut called = Called::default();
        called.add(ContentBlock::text("é".repeat(limits::TEXT_BYTES / 2 - 1)));
        called.add(ContentBlock::text("éé"));
        called.add(ContentBlock::text("more"));
        assert!(called.text.len() <= limits::TEXT_BYTES);
        for _ in 0..3 {
            called.add(ContentBlock::image("A".repeat(limits::IMAGE_BYTES / 2), "image/png"));
        }
        called.add(ContentBlock::image("!", "image/png"));
        assert_eq!(called.images.len(), 2);
        assert_eq!(called.cut.len(), 4, "{:?}", called.cut);
        for _ in 0..1000 {
            called.add(ContentBlock::text("more"));
        }
        assert_eq!(called.cut.len(), limits::PARTS + 1);
    }
}
