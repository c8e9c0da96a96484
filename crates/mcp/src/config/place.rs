//! On which line a key of a JSON text stands: the parser forgets it, people need it.

use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Places {
    lines: BTreeMap<Vec<String>, usize>,
    repeated: Vec<(usize, String)>,
}

impl Places {
    /// `text` is known to be JSON.
    pub(super) fn of(text: &str) -> Places {
        let mut places = Places::default();
        // One entry for each open object or list; a list has no keys.
        let mut open: Vec<Option<String>> = Vec::new();
        let mut lists: Vec<bool> = Vec::new();
        let mut line = 1;
        let mut signs = text.char_indices();
        while let Some((start, sign)) = signs.next() {
            match sign {
                '\n' => line += 1,
                '{' | '[' => {
                    open.push(None);
                    lists.push(sign == '[');
                }
                '}' | ']' => {
                    open.pop();
                    lists.pop();
                }
                '"' => {
                    let mut end = start;
                    while let Some((at, sign)) = signs.next() {
                        end = at;
                        match sign {
                            '\\' => drop(signs.next()),
                            '"' => break,
                            _ => {}
                        }
                    }
                    let after = text.get(end + 1..).unwrap_or_default().trim_start();
                    if lists.last() == Some(&false) && after.starts_with(':') {
                        let key = text.get(start..=end).unwrap_or_default();
                        let key = serde_json::from_str(key).unwrap_or_default();
                        places.note(&mut open, key, line);
                    }
                }
                _ => {}
            }
        }
        places
    }

    fn note(&mut self, open: &mut [Option<String>], key: String, line: usize) {
        if let Some(last) = open.last_mut() {
            *last = Some(key);
        }
        let path: Vec<String> = open.iter().flatten().cloned().collect();
        let name = path.last().cloned().unwrap_or_default();
        // Deeper than a server's own tables nothing is configured.
        if path.len() <= 4 && self.lines.insert(path, line).is_some() {
            self.repeated.push((line, name));
        }
    }

    /// Of the key itself, or of the nearest one above it.
    pub(super) fn line(&self, path: &[&str]) -> usize {
        let mut path: Vec<String> = path.iter().map(|&part| part.to_owned()).collect();
        while !path.is_empty() {
            if let Some(line) = self.lines.get(&path) {
                return *line;
            }
            path.pop();
        }
        1
    }

    pub(super) fn repeated(&self) -> Vec<(usize, String)> {
        self.repeated.clone()
    }
}
