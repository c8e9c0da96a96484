//! What a tag means for the text.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Link,
    Base,
    Quote,
    Body,
    Break,
    Button,
    Code,
    /// The term of a definition, or what it means.
    Term,
    Meaning,
    Heading(usize),
    Rule,
    Image,
    Item,
    Ordered,
    Unordered,
    Paragraph,
    Pre,
    Row,
    Cell,
    /// The head, body or foot of a table.
    Rows,
    Table,
    Title,
    /// Stands apart from what is around it.
    Block,
    /// Not text, or not what the page is about.
    Dropped,
    /// Never has an end, and no text.
    Void,
    Inline,
}

impl Tag {
    pub(super) fn of(name: &[u8]) -> Tag {
        match name {
            b"a" => Tag::Link,
            b"base" => Tag::Base,
            b"blockquote" => Tag::Quote,
            b"body" => Tag::Body,
            b"br" => Tag::Break,
            b"button" => Tag::Button,
            b"code" | b"kbd" | b"samp" | b"tt" => Tag::Code,
            b"dt" => Tag::Term,
            b"dd" => Tag::Meaning,
            b"h1" => Tag::Heading(1),
            b"h2" => Tag::Heading(2),
            b"h3" => Tag::Heading(3),
            b"h4" => Tag::Heading(4),
            b"h5" => Tag::Heading(5),
            b"h6" => Tag::Heading(6),
            b"hr" => Tag::Rule,
            b"img" => Tag::Image,
            b"li" => Tag::Item,
            b"ol" => Tag::Ordered,
            b"ul" | b"menu" => Tag::Unordered,
            b"p" => Tag::Paragraph,
            b"pre" | b"listing" | b"xmp" | b"plaintext" => Tag::Pre,
            b"tr" => Tag::Row,
            b"td" | b"th" => Tag::Cell,
            b"thead" | b"tbody" | b"tfoot" => Tag::Rows,
            b"table" => Tag::Table,
            b"title" => Tag::Title,
            _ => Tag::more(name),
        }
    }

    fn more(name: &[u8]) -> Tag {
        match name {
            b"address" | b"article" | b"aside" | b"caption" | b"center" | b"details" | b"div"
            | b"dl" | b"fieldset" | b"figcaption" | b"figure" | b"form" | b"header" | b"hgroup"
            | b"legend" | b"main" | b"search" | b"section" | b"summary" => Tag::Block,
            b"script" | b"style" | b"noscript" | b"template" | b"iframe" | b"object" | b"svg"
            | b"math" | b"canvas" | b"audio" | b"video" | b"select" | b"textarea" | b"dialog"
            | b"nav" | b"footer" | b"noembed" | b"noframes" | b"applet" | b"datalist"
            | b"progress" | b"meter" => Tag::Dropped,
            b"area" | b"col" | b"embed" | b"input" | b"link" | b"meta" | b"param" | b"source"
            | b"track" | b"wbr" => Tag::Void,
            _ => Tag::Inline,
        }
    }

    pub(super) fn has_end(self) -> bool {
        !matches!(self, Tag::Base | Tag::Break | Tag::Rule | Tag::Image | Tag::Void)
    }

    /// Ends a paragraph that is still open.
    pub(super) fn ends_paragraph(self) -> bool {
        match self {
            Tag::Quote
            | Tag::Term
            | Tag::Meaning
            | Tag::Heading(_)
            | Tag::Rule
            | Tag::Item
            | Tag::Ordered
            | Tag::Unordered
            | Tag::Paragraph
            | Tag::Pre
            | Tag::Table
            | Tag::Block => true,
            Tag::Link
            | Tag::Base
            | Tag::Body
            | Tag::Break
            | Tag::Button
            | Tag::Code
            | Tag::Image
            | Tag::Row
            | Tag::Cell
            | Tag::Rows
            | Tag::Title
            | Tag::Dropped
            | Tag::Void
            | Tag::Inline => false,
        }
    }

    /// Nothing inside ends what is outside.
    pub(super) fn is_wall(self) -> bool {
        matches!(self, Tag::Table | Tag::Cell)
    }

    pub(super) fn is_of_table(self) -> bool {
        matches!(self, Tag::Table | Tag::Rows | Tag::Row | Tag::Cell)
    }
}
