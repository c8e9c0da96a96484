//! Histories as they were last written for a model, so that the next request copies bytes instead
//! of encoding the whole conversation again. Shared by all wires; each brings its own encoding.
//!
//! A history is known by its lines themselves, not by their numbers: sessions number alike. Lines
//! never change and the weak references held here keep their addresses from being used again, so
//! the same address is the same line. Only the first and the last of what was written are looked
//! at: a history grows at its end and nowhere else, so between the same two lines are the same
//! lines. After a compaction the first line is another one, and what was kept is dropped with the
//! lines it was made of.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use locum_kernel::{Line, Lines, Tuning};
use serde_json::Value;

use crate::provider::Asked;

/// Histories kept, in bytes. About a thousand agents in long conversations.
pub(crate) const KEPT_BYTES_MAX: usize = 256 * 1024 * 1024;

/// How a wire writes requests.
pub(crate) trait Encoding {
    /// What it must know to go on writing where it stopped.
    type Pen: Default;

    /// Everything that comes before the history and is the same turn after turn.
    fn head(&self, asked: &Asked, into: &mut Vec<u8>);

    /// One more line at the end of the history.
    fn line(&self, line: &Line, pen: &mut Self::Pen, into: &mut Vec<u8>);
}

/// Heads remembered: as many kinds of agents as may be at work at one time.
const HEADS_MAX: usize = 64;

/// The part of a request that grows only at its end.
#[derive(Debug)]
pub(crate) struct Written<P> {
    pub(crate) head: Arc<Head>,
    /// How many lines were written, and the first and the last of them.
    lines: usize,
    ends: Option<[Weak<Line>; 2]>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) pen: P,
    used: u64,
}

/// What comes before a history, with what it was written from, to see that it still holds. All
/// agents of one kind share it.
#[derive(Debug)]
pub(crate) struct Head {
    definition: String,
    model: String,
    instructions: String,
    catalogue: Vec<String>,
    tools: Vec<String>,
    output: Option<Arc<Value>>,
    tuning: Tuning,
    pub(crate) bytes: Vec<u8>,
}

impl Head {
    fn is_of(&self, asked: &Asked) -> bool {
        let request = &asked.request;
        self.definition == asked.definition
            && self.model == request.model
            && self.instructions == request.instructions
            && self.catalogue == request.catalogue
            && self.tools == request.tools
            && self.output == request.output
            && self.tuning == request.tuning
    }

    fn write<E: Encoding>(encoding: &E, asked: &Asked) -> Head {
        let mut bytes = Vec::new();
        encoding.head(asked, &mut bytes);
        let request = &asked.request;
        Head {
            definition: asked.definition.clone(),
            model: request.model.clone(),
            instructions: request.instructions.clone(),
            catalogue: request.catalogue.clone(),
            tools: request.tools.clone(),
            output: request.output.clone(),
            tuning: request.tuning.clone(),
            bytes,
        }
    }
}

impl<P: Default> Written<P> {
    fn new(head: Arc<Head>) -> Written<P> {
        let (bytes, pen) = (Vec::new(), P::default());
        Written { head, lines: 0, ends: None, bytes, pen, used: 0 }
    }

    /// Writes what was said since.
    fn go_on<E: Encoding<Pen = P>>(&mut self, encoding: &E, asked: &Asked) {
        let lines = &asked.request.lines;
        for line in lines.after(self.lines) {
            encoding.line(line, &mut self.pen, &mut self.bytes);
        }
        self.lines = lines.len();
        self.ends = lines.first().zip(lines.last()).map(|(a, b)| [a, b].map(Arc::downgrade));
    }

    fn begins(&self, lines: &Lines) -> bool {
        let same = |kept: &Weak<Line>, at: usize| {
            lines.get(at).is_some_and(|line| kept.as_ptr() == Arc::as_ptr(line))
        };
        let Some([first, last]) = &self.ends else { return true };
        same(first, 0) && same(last, self.lines.saturating_sub(1))
    }

    fn size(&self) -> usize {
        // A line that is only remembered still has its place.
        self.bytes.capacity() + 2 * size_of::<Line>() + size_of::<Written<P>>()
    }
}

/// The histories of all agents that ask through one provider.
#[derive(Debug)]
pub(crate) struct Histories<P> {
    kept: Mutex<Kept<P>>,
    bytes_max: usize,
}

#[derive(Debug)]
struct Kept<P> {
    /// The newest last.
    heads: Vec<Arc<Head>>,
    /// By the address of its first line.
    written: HashMap<usize, Written<P>>,
    bytes: usize,
    /// How often something was taken: what was used last is the youngest.
    uses: u64,
}

impl<P: Default> Default for Histories<P> {
    fn default() -> Histories<P> {
        Histories::new(KEPT_BYTES_MAX)
    }
}

impl<P: Default> Histories<P> {
    pub(crate) fn new(bytes_max: usize) -> Histories<P> {
        let kept = Kept { heads: Vec::new(), written: HashMap::new(), bytes: 0, uses: 0 };
        Histories { kept: Mutex::new(kept), bytes_max }
    }

    /// Writes what is new of a request and shows all of it.
    pub(crate) fn write<E: Encoding<Pen = P>, T>(
        &self,
        encoding: &E,
        asked: &Asked,
        show: impl FnOnce(&Written<P>) -> T,
    ) -> T {
        let key = asked.request.lines.first().map(key);
        // Taken out while it is written: nobody waits for somebody else's history.
        let kept = key.and_then(|key| self.lock().take(key));
        let kept = kept.filter(|kept| kept.begins(&asked.request.lines));
        let mut written = match kept {
            Some(kept) if kept.head.is_of(asked) => kept,
            Some(kept) => Written { head: self.head(encoding, asked), ..kept },
            None => Written::new(self.head(encoding, asked)),
        };
        written.go_on(encoding, asked);
        let shown = show(&written);
        if let Some(key) = key {
            self.lock().put(key, written, self.bytes_max);
        }
        shown
    }

    fn head<E: Encoding<Pen = P>>(&self, encoding: &E, asked: &Asked) -> Arc<Head> {
        let known = self.lock().heads.iter().rev().find(|head| head.is_of(asked)).cloned();
        known.unwrap_or_else(|| {
            let head = Arc::new(Head::write(encoding, asked));
            let heads = &mut self.lock().heads;
            if heads.len() >= HEADS_MAX {
                heads.remove(0);
            }
            heads.push(Arc::clone(&head));
            head
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept<P>> {
        // Whatever a panic left behind is whole: entries are moved in and out, never changed here.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn kept(&self) -> (usize, usize) {
        let kept = self.lock();
        (kept.written.len(), kept.bytes)
    }
}

fn key(line: &Arc<Line>) -> usize {
    Arc::as_ptr(line).addr()
}

impl<P> Kept<P> {
    fn take(&mut self, key: usize) -> Option<Written<P>>
    where
        P: Default,
    {
        let written = self.written.remove(&key)?;
        self.bytes = self.bytes.saturating_sub(written.size());
        Some(written)
    }

    fn put(&mut self, key: usize, mut written: Written<P>, bytes_max: usize)
    where
        P: Default,
    {
        let is_new = written.used == 0;
        self.uses += 1;
        written.used = self.uses;
        self.bytes += written.size();
        if let Some(before) = self.written.insert(key, written) {
            self.bytes = self.bytes.saturating_sub(before.size());
        }
        // Looked through when somebody new comes, not at every turn.
        if is_new || self.bytes > bytes_max {
            self.drop_dead();
        }
        while self.bytes > bytes_max {
            let oldest = self.written.iter().min_by_key(|(_, written)| written.used);
            let Some(oldest) = oldest.map(|(key, _)| *key) else { break };
            self.take(oldest);
        }
    }

    /// Histories whose first line nobody holds any more: compacted, or ended.
    fn drop_dead(&mut self)
    where
        P: Default,
    {
        let dead = |written: &Written<P>| {
            written.ends.as_ref().is_some_and(|[first, _]| first.strong_count() == 0)
        };
        self.written.retain(|_, written| !dead(written));
        self.bytes = self.written.values().map(Written::size).sum();
    }
}
