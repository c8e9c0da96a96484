//! `cargo xtask crash`: the real program, killed at every append and at random moments of a dozen
//! stories, started again, and held against a play in which nobody died.
//!
//! In reading order: this plan and its report, a `story`, a `point` at which it dies, one
//! `process`, a whole `play`; then the `tale` that can be compared, and the `oracle` that does.

mod oracle;
mod play;
mod point;
mod process;
mod story;
mod tale;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, Result, bail};

use crate::run;
use play::{Folder, Played, play};
use point::{Death, Dice, Point};
use process::TRACE;
use story::Story;

/// Deaths in a row at a random moment.
const IN_A_ROW: u64 = 3;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Flags {
    points: usize,
    seed: u64,
    only: Option<String>,
    at: Option<String>,
    strace: bool,
}

impl Default for Flags {
    fn default() -> Flags {
        Flags { points: 1_000, seed: 1, only: None, at: None, strace: false }
    }
}

/// None: the flags are not ours, and the caller shows the usage.
pub(crate) fn parse(flags: &[&str]) -> Option<Flags> {
    let mut parsed = Flags::default();
    let mut rest = flags;
    loop {
        match rest {
            [] => return Some(parsed),
            ["--strace", tail @ ..] => {
                parsed.strace = true;
                rest = tail;
            }
            [flag, value, tail @ ..] => {
                match *flag {
                    "--points" => parsed.points = value.replace('_', "").parse().ok()?,
                    "--seed" => parsed.seed = value.parse().ok()?,
                    "--only" => parsed.only = Some((*value).to_owned()),
                    "--at" => parsed.at = Some((*value).to_owned()),
                    _ => return None,
                }
                rest = tail;
            }
            [_] => return None,
        }
    }
}

pub(crate) fn main(flags: &Flags) -> Result<ExitCode> {
    let root = run::root()?;
    let built = run::cargo(&root).args(["build", "--quiet", "-p", "locum"]).status()?;
    if !built.success() {
        bail!("locum does not build");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let binary = target.join("debug").join("locum");
    if flags.strace && !can_strace() {
        bail!("strace is not there, or may not trace here");
    }
    let clock = run::Stopwatch::start();
    let mut stories = Story::all(&root.join("xtask/crash"))?;
    stories.retain(|story| flags.only.as_ref().is_none_or(|only| *only == story.name));
    if stories.is_empty() {
        bail!("there is no such story");
    }
    let mut plans = Vec::new();
    for story in stories {
        plans.push(Plan::new(&binary, story, flags)?);
    }
    share(&mut plans, flags);
    let reports = perform(&binary, &plans)?;
    let (mut points, mut failed) = (0, 0);
    println!("{:<14} {:>6} {:>8} {:>8} {:>8}", "story", "points", "restarts", "cut", "failures");
    for (plan, report) in plans.iter().zip(&reports) {
        let Report { restarts, cut, failures } = report;
        let (name, planned) = (&plan.story.name, plan.points.len());
        println!("{name:<14} {planned:>6} {restarts:>8} {cut:>8} {:>8}", failures.len());
        points += planned;
        failed += failures.len();
    }
    for failure in reports.iter().flat_map(|report| &report.failures) {
        println!("\n{failure}");
    }
    println!("{points} points, {failed} failures ({})", clock.seconds());
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One story, how it goes when nobody dies, and where somebody will.
struct Plan {
    story: Story,
    sound: Played,
    points: Vec<Point>,
}

impl Plan {
    fn new(binary: &Path, story: Story, flags: &Flags) -> Result<Plan> {
        let name = story.name.clone();
        let undisturbed = |which: &str| -> Result<Played> {
            let folder = Folder::new(&format!("{name}-{which}"))?;
            play(binary, &story, &Point::none(), &folder).with_context(|| name.clone())
        };
        let (sound, second) = (undisturbed("sound")?, undisturbed("second")?);
        for played in [&sound, &second] {
            let mut wrong = oracle::problems(&story, played, &sound)?;
            wrong.extend(oracle::unintended(&story, played));
            if !wrong.is_empty() {
                bail!("{name} goes wrong though nobody dies:\n{}", wrong.join("\n"));
            }
        }
        let mut points = Vec::new();
        match &flags.at {
            Some(at) => points.push(at.parse()?),
            None if flags.strace => points = syscalls(binary, &story)?,
            None => points.extend(appends(&sound)),
        }
        Ok(Plan { story, sound, points })
    }

    /// A moment of one act, and then, in the middle of recovering from it, another one or two.
    fn moment(&self, dice: &mut Dice) -> Point {
        let last = self.sound.acts.len().saturating_sub(1);
        let act = usize::try_from(dice.up_to(last as u64)).unwrap_or(0);
        let ms = self.sound.acts.get(act).map_or(0, |(_, ms)| *ms);
        let more = dice.up_to(IN_A_ROW - 1);
        let mut deaths = vec![Death::Kill(dice.up_to(ms))];
        for _ in 0..more {
            deaths.push(match dice.up_to(3) {
                0 => Death::Before(1 + dice.up_to(3)),
                1 => Death::After(1 + dice.up_to(3)),
                _ => Death::Kill(dice.up_to(ms)),
            });
        }
        Point { act, deaths }
    }
}

/// Before and after every append.
fn appends(sound: &Played) -> impl Iterator<Item = Point> {
    let numbers = sound
        .acts
        .iter()
        .enumerate()
        .flat_map(|(act, (appends, _))| (1..=*appends as u64).map(move |number| (act, number)));
    numbers.flat_map(|(act, number)| {
        [Death::Before(number), Death::After(number)]
            .map(|death| Point { act, deaths: vec![death] })
    })
}

/// The highest number strace takes; nobody writes as often.
const NEVER: u64 = 65_535;

/// At every write and sync. strace counts for each thread alone: the busiest one says how many.
fn syscalls(binary: &Path, story: &Story) -> Result<Vec<Point>> {
    let mut points = Vec::new();
    for act in 0..story.people.acts.len() {
        let folder = Folder::new(&format!("{}-syscalls", story.name))?;
        let nobody = Point { act, deaths: vec![Death::Syscall(NEVER)] };
        play(binary, story, &nobody, &folder)?;
        let mut threads: BTreeMap<String, u64> = BTreeMap::new();
        for line in folder.read(TRACE).lines() {
            let thread = line.split(' ').next().unwrap_or_default().to_owned();
            *threads.entry(thread).or_default() += 1;
        }
        let most = threads.into_values().max().context("strace saw no write and no sync")?;
        points.extend((1..=most).map(|number| Point { act, deaths: vec![Death::Syscall(number)] }));
    }
    Ok(points)
}

/// What is left of the points are random moments, the same number for every story. One that
/// mostly waits gets none: its appends take as long as everybody else's moments.
fn share(plans: &mut [Plan], flags: &Flags) {
    if flags.at.is_some() || flags.strace {
        return;
    }
    let planned: usize = plans.iter().map(|plan| plan.points.len()).sum();
    let mut left = flags.points.saturating_sub(planned);
    let mut dice: Vec<Dice> =
        plans.iter().map(|plan| Dice::new(flags.seed, &plan.story.name)).collect();
    let quick = plans.iter().any(|plan| !plan.story.people.slow);
    while left > 0 {
        for (plan, dice) in plans.iter_mut().zip(&mut dice) {
            if left > 0 && (!quick || !plan.story.people.slow) {
                let point = plan.moment(dice);
                plan.points.push(point);
                left -= 1;
            }
        }
    }
}

#[derive(Debug, Default)]
struct Report {
    restarts: usize,
    cut: usize,
    failures: Vec<String>,
}

/// As many at once as there are processors; stories that mostly wait go beside them.
fn perform(binary: &Path, plans: &[Plan]) -> Result<Vec<Report>> {
    let hands = thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let queue = |slow: bool| {
        let of = plans.iter().enumerate().filter(|(_, plan)| plan.story.people.slow == slow);
        let points = of.flat_map(|(index, plan)| plan.points.iter().map(move |at| (index, at)));
        Mutex::new(points.collect::<VecDeque<_>>())
    };
    let (quick, slow) = (queue(false), queue(true));
    let reports: Mutex<Vec<Report>> = Mutex::new(plans.iter().map(|_| Report::default()).collect());
    let work = |name: String, queue: &Mutex<VecDeque<(usize, &Point)>>| -> Result<()> {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some((index, point)) = next else { return Ok(()) };
            let trial = try_point(binary, &plans[index], point, &name)?;
            let mut reports = reports.lock().unwrap_or_else(PoisonError::into_inner);
            let report = &mut reports[index];
            report.restarts += trial.restarts;
            report.cut += trial.cut;
            report.failures.extend(trial.failures);
        }
    };
    thread::scope(|scope| {
        let work = &work;
        let quick = (0..hands).map(|hand| (format!("quick{hand}"), &quick));
        let slow = (0..2 * hands).map(|hand| (format!("slow{hand}"), &slow));
        let hands: Vec<_> =
            quick.chain(slow).map(|(name, queue)| scope.spawn(move || work(name, queue))).collect();
        hands.into_iter().try_for_each(|hand| match hand.join() {
            Ok(done) => done,
            Err(_) => bail!("a hand panicked"),
        })
    })?;
    Ok(reports.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn try_point(binary: &Path, plan: &Plan, point: &Point, hand: &str) -> Result<Report> {
    let story = &plan.story;
    let folder = Folder::new(&format!("{}-{hand}", story.name))?;
    let mut report = Report::default();
    let problems = match play(binary, story, point, &folder) {
        Ok(played) => {
            report.restarts = played.runs.len().saturating_sub(story.people.acts.len());
            report.cut = oracle::cut(story, &played)?;
            oracle::problems(story, &played, &plan.sound)?
        }
        Err(error) => vec![format!("{error:#}\nstderr: {}", folder.read("stderr"))],
    };
    if !problems.is_empty() {
        let again = format!("cargo xtask crash --only {} --at {point}", story.name);
        report.failures.push(format!("{again}\n{}", problems.join("\n")));
    }
    Ok(report)
}

/// Whether deaths can be injected at system calls here.
fn can_strace() -> bool {
    let probe = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    probe.is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::{Flags, parse};

    #[test]
    fn flags() {
        let named = Flags { only: Some("deep".into()), seed: 7, ..Flags::default() };
        let cases: &[(&[&str], Option<Flags>)] = &[
            (&[], Some(Flags::default())),
            (&["--points", "5_000"], Some(Flags { points: 5_000, ..Flags::default() })),
            (&["--only", "deep", "--seed", "7"], Some(named)),
            (&["--strace"], Some(Flags { strace: true, ..Flags::default() })),
            (
                &["--at", "0,kill:3"],
                Some(Flags { at: Some("0,kill:3".into()), ..Flags::default() }),
            ),
            (&["--points"], None),
            (&["--points", "many"], None),
            (&["--speed", "9"], None),
        ];
        for (flags, expected) in cases {
            assert_eq!(parse(flags), *expected, "{flags:?}");
        }
    }
}
