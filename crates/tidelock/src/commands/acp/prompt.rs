//! Turns what an editor sends into a prompt.

use std::path::Path;

use protocol::NewAttachment;

use super::refusal::Refused;
use super::schema::{ContentBlock, Resource};

/// A prompt: text and attachments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PromptContent {
    pub(super) text: String,
    pub(super) attachments: Vec<NewAttachment>,
}

/// Joins the blocks. A file is named in the text where it stood, relative to the workspace root if it is inside; if
/// it came with content, it is attached as well.
pub(super) fn read(blocks: &[ContentBlock], root: &Path) -> Result<PromptContent, Refused> {
    let mut said = PromptContent::default();
    for block in blocks {
        match block {
            ContentBlock::Text { text } => said.text.push_str(text),
            ContentBlock::ResourceLink { name, uri } => {
                said.text.push_str(&mention(name, uri, root));
            }
            ContentBlock::Resource { resource } => {
                let name = named(&resource.uri, root);
                said.text.push_str(&mention(last_of(&name), &resource.uri, root));
                said.attachments.push(attached(name, resource)?);
            }
            ContentBlock::Image { data, mime_type, uri } => {
                let number = said.attachments.len() + 1;
                let name = match uri {
                    Some(uri) => named(uri, root),
                    None => format!("image-{number}"),
                };
                said.attachments.push(NewAttachment {
                    name,
                    media_type: Some(mime_type.clone()),
                    base64: Some(data.clone()),
                    ..NewAttachment::default()
                });
            }
            ContentBlock::Other => {
                return Err(Refused::params(
                    "a prompt can only contain text, images, resource links and resources",
                ));
            }
        }
    }
    Ok(said)
}

fn attached(name: String, resource: &Resource) -> Result<NewAttachment, Refused> {
    if resource.text.is_none() && resource.blob.is_none() {
        return Err(Refused::params(format!(
            "the resource `{name}` has neither text nor blob"
        )));
    }
    Ok(NewAttachment {
        name,
        media_type: resource.mime_type.clone(),
        text: resource.text.clone(),
        base64: resource.blob.clone().filter(|_| resource.text.is_none()),
    })
}

fn mention(name: &str, uri: &str, root: &Path) -> String {
    let place = named(uri, root);
    if place == name || last_of(&place) == name {
        format!("`{place}`")
    } else {
        format!("[{name}]({place})")
    }
}

/// The path of a file relative to the workspace root; for anything else, its URI.
fn named(uri: &str, root: &Path) -> String {
    let Some(path) = uri.strip_prefix("file://") else {
        return uri.to_owned();
    };
    // The fragment gives the lines.
    let (path, lines) = match path.split_once('#') {
        Some((path, lines)) => (path, format!("#{lines}")),
        None => (path, String::new()),
    };
    let path = decoded(path);
    let below = Path::new(&path).strip_prefix(root).ok();
    let below = below.and_then(Path::to_str).filter(|below| !below.is_empty());
    format!("{}{lines}", below.unwrap_or(&path))
}

fn last_of(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// A percent-decoded path. What cannot be decoded stays unchanged.
fn decoded(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let digits = (byte == b'%').then(|| [ahead.next(), ahead.next()]);
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        match digits.map(|[high, low]| digit(high).zip(digit(low))) {
            Some(Some((high, low))) => {
                bytes.extend(u8::try_from(high * 16 + low));
                rest = ahead;
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(blocks: serde_json::Value, text: &str, attachments: &[(&str, Option<&str>, Option<&str>)]) {
        let blocks: Vec<ContentBlock> = serde_json::from_value(blocks).unwrap();
        let attachment = |(name, text, base64): &(&str, Option<&str>, Option<&str>)| NewAttachment {
            name: (*name).to_owned(),
            media_type: None,
            text: text.map(str::to_owned),
            base64: base64.map(str::to_owned),
        };
        let mut said = read(&blocks, Path::new("/w")).unwrap();
        for attachment in &mut said.attachments {
            attachment.media_type = None;
        }
        let expected = PromptContent {
            text: text.to_owned(),
            attachments: attachments.iter().map(attachment).collect(),
        };
        assert_eq!(said, expected);
    }

    #[test]
    fn pieces_are_put_together() {
        check(json!([]), "", &[]);
        let link = |name: &str, uri: &str| json!({ "type": "resource_link", "name": name, "uri": uri });
        check(
            json!([
                { "type": "text", "text": "mend " },
                link("a b.rs", "file:///w/src/a%20b.rs"),
                { "type": "text", "text": " as in " },
                link("notes", "https://example.com/n"),
                link("x", "file:///elsewhere/y"),
            ]),
            "mend `src/a b.rs` as in [notes](https://example.com/n)[x](/elsewhere/y)",
            &[],
        );
        check(
            json!([
                { "type": "text", "text": "see " },
                { "type": "resource", "resource": { "uri": "file:///w/a.rs#L1-2", "text": "fn a()" } },
                { "type": "resource", "resource": { "uri": "mem:1", "blob": "AAA=" } },
                { "type": "image", "data": "AA==", "mimeType": "image/png" },
            ]),
            "see `a.rs#L1-2``mem:1`",
            &[
                ("a.rs#L1-2", Some("fn a()"), None),
                ("mem:1", None, Some("AAA=")),
                ("image-3", None, Some("AA==")),
            ],
        );
    }

    #[test]
    fn what_cannot_be_taken_is_refused_in_words() {
        for block in [
            json!({ "type": "audio", "data": "", "mimeType": "audio/wav" }),
            json!({ "type": "resource", "resource": { "uri": "x:y" } }),
        ] {
            let block: ContentBlock = serde_json::from_value(block).unwrap();
            let refused = read(std::slice::from_ref(&block), Path::new("/w")).unwrap_err();
            assert_eq!(refused.code, Refused::INVALID_PARAMS, "{block:?}");
        }
    }

    #[test]
    fn addresses_are_decoded_or_left_alone() {
        for (path, expected) in [
            ("/a%20b", "/a b"),
            ("/%C3%BC", "/ü"),
            ("/%2", "/%2"),
            ("/%zz", "/%zz"),
            ("/%ff", "/%ff"),
        ] {
            assert_eq!(decoded(path), expected);
        }
    }
}
