//! `grep`: lines that match, by ripgrep's own engine, in order of paths and lines, in pages. Files
//! are searched as they are read, several at a time, and none is in memory whole.

use std::fs::File;
use std::io::{self, Read};
use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};

use crate::args::Grep;
use crate::desk::{Answer, Desk};
use crate::error::Error;
use crate::glob::Wanted;
use crate::guard::Hidden;
use crate::roots::{Root, Roots};
use crate::walk::{Item, Stop, Walk};

pub(crate) mod found;

use found::{Collector, Found, Page};

const ROWS: usize = 200;
const ROWS_MAX: usize = 1000;
/// Whoever needs the ten thousandth match needs a better pattern.
const OFFSET_MAX: usize = 10_000;
const CONTEXT_MAX: usize = 20;
/// Files handed out at a time, the folders that are open for them, and what may be found in them
/// before it is looked through.
const BATCH_FILES: usize = 256;
const BATCH_FOLDERS: usize = 64;
const BATCH_BYTES: usize = 4 << 20;
/// Read by one search.
const SEARCH_BYTES_MAX: u64 = 4 << 30;
/// A line above this is not looked at; nor is the rest of its file.
const LINE_BYTES_MAX: usize = 4 << 20;
const THREADS_MAX: usize = 4;

impl Desk {
    pub fn grep(&self, args: &Grep, stop: &Stop) -> Result<Answer, Error> {
        let hunt = Hunt::new(&self.roots, args, stop)?;
        let mut page = Page::new(args.offset.unwrap_or(0).min(OFFSET_MAX), hunt.limit);
        let path = args.path.as_deref().unwrap_or(".");
        if let Some(found) = self.spill(path) {
            let (handle, spills) = found?;
            let file = spills.open(&handle)?;
            page.add(path, hunt.one(&mut hunt.searcher(), file));
            return Ok(Answer::text(page.finish(&args.pattern, None, &hunt.trouble())));
        }
        let spot = self.roots.to_read(path)?;
        let spot = self.with_hint(spot)?;
        if spot.facts.is_some_and(|facts| !facts.kind.is_dir()) {
            let (file, _) = self.roots.open(&spot)?;
            page.add(&spot.root.say_whole(&spot.path), hunt.one(&mut hunt.searcher(), file));
            return Ok(Answer::text(page.finish(&args.pattern, None, &hunt.trouble())));
        }
        let only = args.glob.as_deref().map(|glob| Wanted::new(glob, &spot.root)).transpose()?;
        let mut walk = Walk::new(&self.roots, &spot, stop)?;
        let mut wanted = || loop {
            let item = walk.next()?;
            let is_wanted = only.as_ref().is_none_or(|only| only.has(&item.path, &spot.path));
            if is_wanted && !item.is_link {
                return Some(item);
            }
        };
        let mut batch = Vec::new();
        while !page.is_full() && !hunt.is_over() {
            fill(&mut batch, &mut wanted);
            if batch.is_empty() {
                break;
            }
            let done = hunt.all(&batch, &spot.root, &mut page);
            batch.drain(..done);
        }
        let cut = walk.cut.filter(|_| !stop.is_set());
        Ok(Answer::text(page.finish(&args.pattern, cut, &hunt.trouble())))
    }
}

fn fill(batch: &mut Vec<Item>, wanted: &mut impl FnMut() -> Option<Item>) {
    let mut folders = 0;
    let mut last = None;
    while batch.len() < BATCH_FILES && folders < BATCH_FOLDERS {
        let Some(item) = wanted() else { return };
        let folder = Some(std::sync::Arc::as_ptr(&item.folder));
        folders += usize::from(folder != last);
        last = folder;
        batch.push(item);
    }
}

/// One search, shared by those who do it.
struct Hunt<'a> {
    roots: &'a Roots,
    stop: &'a Stop,
    matcher: RegexMatcher,
    context: usize,
    limit: usize,
    /// Matches in one file that can still be on the page, and one to know that there are more.
    most: usize,
    read: AtomicU64,
    unread: AtomicUsize,
    hidden: OnceLock<Hidden>,
}

impl<'a> Hunt<'a> {
    fn new(roots: &'a Roots, args: &Grep, stop: &'a Stop) -> Result<Hunt<'a>, Error> {
        let limit = args.limit.unwrap_or(ROWS).clamp(1, ROWS_MAX);
        Ok(Hunt {
            roots,
            stop,
            matcher: matcher(args)?,
            context: args.context.unwrap_or(0).min(CONTEXT_MAX),
            limit,
            most: args.offset.unwrap_or(0).min(OFFSET_MAX) + limit + 1,
            read: AtomicU64::new(0),
            unread: AtomicUsize::new(0),
            hidden: OnceLock::new(),
        })
    }

    fn searcher(&self) -> Searcher {
        SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .line_number(true)
            .before_context(self.context)
            .after_context(self.context)
            .heap_limit(Some(LINE_BYTES_MAX))
            .binary_detection(BinaryDetection::quit(0))
            .build()
    }

    fn is_over(&self) -> bool {
        self.stop.is_set() || self.read.load(Ordering::Relaxed) > SEARCH_BYTES_MAX
    }

    fn trouble(&self) -> Vec<String> {
        let mut trouble = Vec::new();
        if self.stop.is_set() {
            trouble.push("it was told to stop".to_owned());
        }
        if self.read.load(Ordering::Relaxed) > SEARCH_BYTES_MAX {
            trouble.push("too much to search; narrow `path` or `glob`".to_owned());
        }
        match self.unread.load(Ordering::Relaxed) {
            0 => {}
            1 => trouble.push("one file could not be read".to_owned()),
            count => trouble.push(format!("{count} files could not be read")),
        }
        trouble
    }

    fn one(&self, searcher: &mut Searcher, file: File) -> Vec<Found> {
        let mut collector = Collector::new(&self.matcher, self.most, self.stop);
        let reader = Watched { file, hunt: self };
        if searcher.search_reader(&self.matcher, reader, &mut collector).is_err() && !self.is_over()
        {
            self.unread.fetch_add(1, Ordering::Relaxed);
        }
        collector.found
    }

    /// How many of them were searched, from the first on, and are on the page.
    fn all(&self, batch: &[Item], root: &Root, page: &mut Page) -> usize {
        let next = AtomicUsize::new(0);
        let bytes = AtomicUsize::new(0);
        let work = || {
            let mut searcher = self.searcher();
            let mut done = Vec::new();
            while bytes.load(Ordering::Relaxed) < BATCH_BYTES && !self.is_over() {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = batch.get(at) else { break };
                let found = self.item(&mut searcher, item);
                let size: usize = found.iter().map(Found::bytes).sum();
                bytes.fetch_add(size, Ordering::Relaxed);
                done.push((at, found));
            }
            done
        };
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = threads.min(THREADS_MAX).min(batch.len().div_ceil(16));
        let mut done = thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut done = work();
            for other in others {
                // One that panicked has found nothing; its files count as searched.
                done.extend(other.join().unwrap_or_default());
            }
            done
        });
        done.sort_unstable_by_key(|(at, _)| *at);
        for (at, found) in done {
            if !found.is_empty() {
                page.add(&root.say_whole(&batch[at].path), found);
            }
        }
        next.into_inner().min(batch.len()).max(1)
    }

    fn item(&self, searcher: &mut Searcher, item: &Item) -> Vec<Found> {
        let Some((file, facts)) = item.open() else {
            self.unread.fetch_add(1, Ordering::Relaxed);
            return Vec::new();
        };
        let hidden = || self.hidden.get_or_init(|| self.roots.hidden());
        if facts.links > 1 && hidden().has(facts.stamp.device, facts.stamp.inode) {
            return Vec::new();
        }
        self.one(searcher, file)
    }
}

/// Reading is where a search spends its time, so here it hears that it should end.
struct Watched<'a> {
    file: File,
    hunt: &'a Hunt<'a>,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.hunt.is_over() {
            return Err(io::Error::other("stopped"));
        }
        let count = self.file.read(buffer)?;
        self.hunt.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

fn matcher(args: &Grep) -> Result<RegexMatcher, Error> {
    let is_literal = args.literal == Some(true);
    let mut builder = RegexMatcherBuilder::new();
    builder.case_insensitive(args.ignore_case == Some(true));
    builder.fixed_strings(is_literal).crlf(true);
    builder.build(&args.pattern).map_err(|error| {
        let hint = if args.pattern.contains('\n') || args.pattern.contains("\\n") {
            "lines are searched one by one, so a pattern cannot go over their ends"
        } else {
            "for plain text set \"literal\": true"
        };
        Error::Pattern { why: format!("{error}\n{hint}") }
    })
}
